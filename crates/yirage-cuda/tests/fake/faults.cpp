#include "faults.hpp"

#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include <vector>

#include "api.hpp"

namespace {

struct Landing {
  sigjmp_buf place;
  int signal;
  char why[400];
};

// Where this thread goes on after a fault, if it runs something guarded.
thread_local Landing* landing;

const int WATCHED[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
struct sigaction before[NSIG];

void on_signal(int number, siginfo_t* info, void* place) {
  if (Landing* here = landing) {
    here->signal = number;
    siglongjmp(here->place, 1);
  }
  // It is another's: of another fake machine in this process, or of the program.
  const struct sigaction& other = before[number];
  if (other.sa_flags & SA_SIGINFO) {
    other.sa_sigaction(number, info, place);
  } else if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN) {
    other.sa_handler(number);
  } else {
    // It comes again as soon as this returns, and ends the process.
    signal(number, SIG_DFL);
  }
}

}  // namespace

void watch_signals() {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (int number : WATCHED) sigaction(number, &action, &before[number]);
}

void prepare_thread() {
  // The thread ends without a word on its stack to anybody, so the memory stays.
  const size_t size = 1 << 16;
  stack_t own = {};
  own.ss_sp = new char[size];
  own.ss_size = size;
  sigaltstack(&own, nullptr);
}

Outcome run_guarded(const std::function<void()>& work, void (*describe)(char*, size_t, const char*)) {
  Landing here = {};
  landing = &here;
  if (sigsetjmp(here.place, 1) == 0) {
    work();
    landing = nullptr;
    return {};
  }
  landing = nullptr;
  if (here.signal == 0) return {LAUNCH_FAILED, here.why};
  const bool is_access = here.signal == SIGSEGV || here.signal == SIGBUS;
  const char* why = is_access ? "an access beside a buffer" : "an operation that has no value";
  describe(here.why, sizeof here.why, why);
  return {is_access ? ILLEGAL_ADDRESS : LAUNCH_FAILED, here.why};
}

void land(const char* why) {
  Landing* here = landing;
  here->signal = 0;
  strncpy(here->why, why, sizeof here->why - 1);
  siglongjmp(here->place, 1);
}
