struct Amount {
  int value;
};
