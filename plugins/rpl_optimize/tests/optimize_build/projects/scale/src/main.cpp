#include <cstdio>
#include <cstdlib>
float scaled(float value);
int main(int, char** words) { std::printf("%g\n", scaled(std::atof(words[1]))); }
