// A list whose nodes lie in memory of every kind: what the kernels `follow_list` and `walk` go along.
#pragma once

struct Node {
  Node* next;
  int value;
  int visits;
};
