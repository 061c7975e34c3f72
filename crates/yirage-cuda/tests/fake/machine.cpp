#include "machine.hpp"

Machine& machine() {
  static Machine* only = new Machine;
  return *only;
}

Handle new_handle() {
  // No page lies there.
  static uintptr_t last = 0x100;
  last += 8;
  return Handle(last);
}
