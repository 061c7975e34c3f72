// Launches on the processor: fibers, the places where they meet, and the groups of a grid.
//
// A thread of a group is a fiber. The threads of a group run one after the other, each until it meets the others of its group or
// subgroup or ends, in an order that is drawn for each such round, in which some may be held back; the groups of a launch run one
// after the other. Who asks for a launch, and what
// becomes of one that goes wrong, is the program's affair that this is linked to.
#include "grid.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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
unsigned long long groups_run;

namespace {

enum Meeting : Word { NOWHERE, BARRIER, EARLIER, SUBGROUP_GIVES, SUBGROUP_TAKES, THE_END };

struct Fiber {
  void* stopped;
  Meeting at;
  // Threads that meet there, from a multiple of so many on.
  Word width;
  bool waits;
};

// Threads that are held back together, so that others run ahead of them.
const Word HELD = 32;
// Words that a thread gives to its subgroup at most.
const Word MOST_GIVEN = 8;

const size_t STACK = 1 << 20;

// Stacks of fibers with a page that nobody may touch below each. They are made once for as many as there have been.
struct Stacks {
  char* memory = nullptr;
  Word made = 0;

  ~Stacks() { free(); }
  void free() {
    if (memory) munmap(memory, STACK * made);
    memory = nullptr;
    made = 0;
  }
  void make(Word wanted) {
    if (wanted <= made) return;
    free();
    memory = map(STACK * wanted);
    for (Word at = 0; at < wanted; ++at) mprotect(memory + STACK * at, PAGE, PROT_NONE);
    made = wanted;
  }
};

Launch running = {"", nullptr, nullptr, 0, {0, 0, 0}, 0, nullptr};
std::vector<Fiber> fibers;
std::vector<Word> given, order;
Stacks stacks;
void* scheduler;
unsigned long long drawn;
// Whether the group has waited for what came before the launch.
bool waited;

Word draw(Word below) {
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  return Word((drawn >> 16) % below);
}

void meet(Meeting at, Word width) {
  Fiber& fiber = fibers[thread.x];
  fiber.at = at;
  fiber.width = width;
  fiber.waits = true;
  emulator_switch(&fiber.stopped, scheduler);
}

void fiber_main() {
  running.run(running.buffers);
  meet(THE_END, threads);
  fail("a thread that has ended runs");
}

void begin_threads() {
  for (Word at = 0; at < threads; ++at) {
    void** top = (void**)(stacks.memory + STACK * (at + 1)) - SAVED;
    memset(top, 0, SAVED * sizeof *top);
    top[RETURN] = (void*)fiber_main;
    fibers[at] = {top, NOWHERE, 0, false};
  }
}

// An order of all threads: ascending, descending or any.
void draw_order() {
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
}

// Which threads are held back until no other can run, from one place where the group meets to the next: in half of the cases none.
unsigned long long draw_held() { return draw(2) ? 0 : draw(~0u) | (unsigned long long)draw(~0u) << 32; }

// Runs threads that wait for no other, each until it meets some: all of them, or those that are not held back. Whether any ran.
bool run_round(unsigned long long held) {
  bool ran = false;
  for (Word at : order) {
    if (fibers[at].waits || held >> (at / HELD % 64) & 1) continue;
    thread = {at, 0, 0};
    emulator_switch(&scheduler, fibers[at].stopped);
    ran = true;
  }
  return ran;
}

bool is_of_group(const Fiber& fiber) { return fiber.at == BARRIER || fiber.at == EARLIER || fiber.at == THE_END; }

// Lets threads go on whose subgroups are all where they are. Whether there were any.
bool release_subgroups() {
  bool released = false;
  for (Word first = 0; first < threads;) {
    const Fiber& one = fibers[first];
    if (!one.waits || is_of_group(one)) {
      ++first;
      continue;
    }
    const Word begin = first / one.width * one.width, behind = begin + one.width;
    const Word end = behind < threads ? behind : threads;
    bool all = begin == first;
    for (Word at = begin; at < end; ++at) all &= fibers[at].waits && fibers[at].at == one.at && fibers[at].width == one.width;
    for (Word at = begin; all && at < end; ++at) fibers[at].waits = false;
    released |= all;
    first = all ? end : first + 1;
  }
  return released;
}

// Whether threads run at all, of which all wait.
bool release_group() {
  for (Word at : order)
    if (fibers[at].at != fibers[order[0]].at || !is_of_group(fibers[at])) {
      thread = {at, 0, 0};
      fail("it is not where the others meet");
    }
  if (fibers[0].at == EARLIER) waited = true;
  if (fibers[0].at == EARLIER && running.withhold) running.withhold(false);
  if (fibers[0].at == THE_END && running.withhold && !waited) {
    thread = {order[0], 0, 0};
    fail("it ended without waiting for what came before the launch");
  }
  if (fibers[0].at == THE_END) return false;
  for (Fiber& fiber : fibers) fiber.waits = false;
  return true;
}

void run_group() {
  ++groups_run;
  begin_threads();
  waited = false;
  if (running.withhold) running.withhold(true);
  unsigned long long held = draw_held();
  for (bool runs = true; runs;) {
    draw_order();
    const bool ran = run_round(held) || run_round(0);
    if (release_subgroups() || ran) continue;
    runs = release_group();
    held = draw_held();
  }
}

}  // namespace

void describe(char* text, size_t size, const char* why) {
  snprintf(text, size, "thread %u of group %u %u %u of `%s`: %s", thread.x, group.x, group.y, group.z, running.name, why);
}

void fail(const char* why) {
  char text[400];
  describe(text, sizeof text, why);
  failed(text);
}

char* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  return (char*)memory;
}

void run_grid(const Launch& launch) {
  running = launch;
  drawn = launch.seed * 0x9e3779b97f4a7c15ull | 1;
  threads = launch.threads;
  fibers.resize(threads);
  given.resize(threads * MOST_GIVEN);
  stacks.make(threads);
  order.resize(threads);
  for (Word at = 0; at < threads; ++at) order[at] = at;
  for (group.z = 0; group.z < launch.grid.z; ++group.z)
    for (group.y = 0; group.y < launch.grid.y; ++group.y)
      for (group.x = 0; group.x < launch.grid.x; ++group.x) run_group();
}

void barrier() { meet(BARRIER, threads); }

void wait_for_earlier() {
  if (running.withhold) meet(EARLIER, threads);
}

const Word* gather(const Word* words, Word count, Word subgroup) {
  for (Word at = 0; at < count; ++at) given[thread.x * MOST_GIVEN + at] = words[at];
  meet(SUBGROUP_GIVES, subgroup);
  return &given[thread.x / subgroup * subgroup * MOST_GIVEN];
}

void gathered(Word subgroup) { meet(SUBGROUP_TAKES, subgroup); }

Word exchange(Word word, Word lane, Word subgroup) {
  const Word* all = gather(&word, 1, subgroup);
  const Word other = thread.x / subgroup * subgroup + lane;
  const Word taken = lane < subgroup && other < threads ? all[lane * MOST_GIVEN] : 0xa5a5a5a5u;
  gathered(subgroup);
  return taken;
}

}  // namespace emulator
