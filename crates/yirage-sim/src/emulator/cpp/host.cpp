// The emulator: launches, as they come through standard input, of the kernels that are linked to it.
//
// A thread of a group is a fiber. The threads of a group run one after the other, each until it meets the others or ends, in an
// order that is drawn for each such round; the groups of a launch run one after the other. What a device would not tell ends
// the program with a word on why: an access beside a buffer, a write to one that is read, a thread that ends where others wait.
//
// A request: the length of the kernel's name and the name, a seed, the grid's three extents, and the number of buffers; of each,
// how many words it has, whether it is written, and the words. The answer: 0 and the words of all that are written, or the length
// of a text and the text, behind which the program ends. All numbers are words of 32 bits in the processor's order.
#include "emulator.hpp"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the emulator knows how to switch fibers on x86-64 and AArch64 alone"
#endif

// Keeps what a function may not change, and goes on where another fiber stopped.
extern "C" void emulator_switch(void** stopped, void* next);
#if defined(__x86_64__)
asm(R"(
.text
.globl emulator_switch
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
// Words that a switch takes off a stack, of which the last is where it goes on, and one that keeps the stack aligned.
static const int SAVED = 8, RETURN = 6;
#else
asm(R"(
.text
.globl emulator_switch
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
static const int SAVED = 20, RETURN = 11;
#endif

namespace emulator {

Index thread, group;
Word threads;

namespace {

enum Meeting : Word { NOWHERE, BARRIER, SUBGROUP_GIVES, SUBGROUP_TAKES, THE_END };

struct Fiber {
  void* stopped;
  Meeting at;
};

const size_t STACK = 1 << 20, PAGE = 1 << 14;
const unsigned int SECONDS = 300;

const Kernel* kernels;
const Kernel* running;
std::vector<Fiber> fibers;
std::vector<Word> given;
const Buffer* buffers;
char* stacks;
Word stacks_made;
void* scheduler;
unsigned long long drawn;

void put(const void* bytes, size_t count) {
  for (const char* at = (const char*)bytes; count > 0;) {
    const ssize_t done = write(1, at, count);
    if (done <= 0) _exit(1);
    at += done;
    count -= size_t(done);
  }
}

bool take(void* bytes, size_t count) {
  for (char* at = (char*)bytes; count > 0;) {
    const ssize_t done = read(0, at, count);
    if (done <= 0) return false;
    at += done;
    count -= size_t(done);
  }
  return true;
}

Word take_word() {
  Word word;
  if (!take(&word, sizeof word)) _exit(1);
  return word;
}

[[noreturn]] void fail(const char* why) {
  char text[400];
  const int length = snprintf(text, sizeof text, "thread %u of group %u %u %u of `%s`: %s", thread.x, group.x, group.y, group.z,
                              running ? running->name : "", why);
  const Word answer = Word(length);
  put(&answer, sizeof answer);
  put(text, answer);
  _exit(1);
}

void on_signal(int number) {
  switch (number) {
    case SIGSEGV:
    case SIGBUS: fail("an access beside a buffer or to one that is read only");
    case SIGALRM: fail("it runs for too long");
    default: fail("an operation that has no value in C++");
  }
}

void watch_signals() {
  static char stack[1 << 16];
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  sigaltstack(&own, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM}) sigaction(number, &action, nullptr);
}

char* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  return (char*)memory;
}

Word draw(Word below) {
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  return Word((drawn >> 16) % below);
}

void meet(Meeting at) {
  Fiber& fiber = fibers[thread.x];
  fiber.at = at;
  emulator_switch(&fiber.stopped, scheduler);
}

void fiber_main() {
  running->run(buffers);
  meet(THE_END);
  fail("a thread that has ended runs");
}

// Stacks with a page that nobody may touch below each.
void make_stacks() {
  if (threads <= stacks_made) return;
  if (stacks) munmap(stacks, STACK * stacks_made);
  stacks = map(STACK * threads);
  for (Word at = 0; at < threads; ++at) mprotect(stacks + STACK * at, PAGE, PROT_NONE);
  stacks_made = threads;
}

void begin_threads() {
  for (Word at = 0; at < threads; ++at) {
    void** top = (void**)(stacks + STACK * (at + 1)) - SAVED;
    memset(top, 0, SAVED * sizeof *top);
    top[RETURN] = (void*)fiber_main;
    fibers[at] = {top, NOWHERE};
  }
}

// Runs every thread until it meets the others, in ascending, descending or any order.
void run_round(std::vector<Word>& order) {
  switch (draw(3)) {
    case 0:
      for (Word at = 0; at < threads; ++at) order[at] = at;
      break;
    case 1:
      for (Word at = 0; at < threads; ++at) order[at] = threads - 1 - at;
      break;
    default:
      for (Word at = threads - 1; at > 0; --at) {
        const Word other = draw(at + 1), here = order[at];
        order[at] = order[other];
        order[other] = here;
      }
  }
  for (Word at : order) {
    thread = {at, 0, 0};
    emulator_switch(&scheduler, fibers[at].stopped);
    if (fibers[at].at != fibers[order[0]].at) fail("it is not where the others meet");
  }
}

void run_group(std::vector<Word>& order) {
  begin_threads();
  do {
    run_round(order);
  } while (fibers[0].at != THE_END);
}

// A buffer that ends where its memory does, so that the word behind it is nobody's.
struct Guarded {
  char* memory;
  size_t pages, bytes;
  bool written;

  Guarded() {
    bytes = size_t(take_word()) * sizeof(Word);
    written = take_word() != 0;
    pages = (bytes + PAGE - 1) / PAGE * PAGE;
    memory = map(pages + 2 * PAGE);
    mprotect(memory, PAGE, PROT_NONE);
    mprotect(memory + PAGE + pages, PAGE, PROT_NONE);
    if (!take(words(), bytes)) _exit(1);
    if (!written && pages) mprotect(memory + PAGE, pages, PROT_READ);
  }
  char* words() { return memory + PAGE + pages - bytes; }
  void free() { munmap(memory, pages + 2 * PAGE); }
};

void run_launch(const Index& grid) {
  threads = running->threads;
  fibers.resize(threads);
  given.resize(threads);
  make_stacks();
  std::vector<Word> order(threads);
  for (Word at = 0; at < threads; ++at) order[at] = at;
  for (group.z = 0; group.z < grid.z; ++group.z)
    for (group.y = 0; group.y < grid.y; ++group.y)
      for (group.x = 0; group.x < grid.x; ++group.x) run_group(order);
}

void serve_launch(Word length) {
  std::vector<char> name(length + 1, 0);
  if (!take(name.data(), length)) _exit(1);
  for (running = kernels; running && strcmp(running->name, name.data()); running = running->next) {
  }
  drawn = take_word() * 0x9e3779b97f4a7c15ull | 1;
  const Word x = take_word(), y = take_word(), z = take_word();
  std::vector<Guarded> guarded(take_word());
  std::vector<Buffer> bound;
  for (Guarded& buffer : guarded) bound.push_back({buffer.words()});
  buffers = bound.data();
  if (!running) fail("there is no such kernel");
  alarm(SECONDS);
  run_launch({x, y, z});
  alarm(0);
  const Word done = 0;
  put(&done, sizeof done);
  for (Guarded& buffer : guarded) {
    if (buffer.written) put(buffer.words(), buffer.bytes);
    buffer.free();
  }
}

}  // namespace

Kernel::Kernel(const char* name, Word threads, void (*run)(const Buffer*)) : name(name), threads(threads), run(run), next(kernels) {
  kernels = this;
}

void barrier() { meet(BARRIER); }

Word exchange(Word word, Word lane, Word subgroup) {
  given[thread.x] = word;
  meet(SUBGROUP_GIVES);
  const Word other = thread.x / subgroup * subgroup + lane;
  const Word taken = lane < subgroup && other < threads ? given[other] : 0xa5a5a5a5u;
  meet(SUBGROUP_TAKES);
  return taken;
}

}  // namespace emulator

int main() {
  emulator::watch_signals();
  emulator::Word length;
  while (emulator::take(&length, sizeof length)) emulator::serve_launch(length);
  return 0;
}
