// What each maker calls its functions, and the numbers that it gives types. One of FAKE_NCCL, FAKE_MCCL, FAKE_CNCL and FAKE_HCCL is
// defined; the first is NVIDIA's, AMD's, Hygon's and Iluvatar's.
#pragma once

#if defined(FAKE_NCCL)
#define NAME(rest) nccl##rest
#elif defined(FAKE_MCCL)
#define NAME(rest) mccl##rest
#elif defined(FAKE_CNCL)
#define NAME(rest) cncl##rest
#elif defined(FAKE_HCCL)
#define NAME(rest) Hccl##rest
#else
#error "no maker"
#endif

#define API extern "C" __attribute__((visibility("default")))

// What a function answers.
#if defined(FAKE_CNCL)
enum { DONE = 0, INVALID = 0x07, REMOTE = 0x16, IN_PROGRESS = 0x06, SYSTEM = 0x02 };
#elif defined(FAKE_HCCL)
enum { DONE = 0, INVALID = 1, REMOTE = 9, IN_PROGRESS = -1, SYSTEM = 4 };
#else
enum { DONE = 0, INVALID = 4, REMOTE = 6, IN_PROGRESS = 7, SYSTEM = 2 };
#endif

// The types that are computed with: by their numbers.
enum class Element { F32, F16, BF16, I32, U8, NONE };

static inline Element element_of(int number) {
#if defined(FAKE_CNCL)
  switch (number) {
    case 0x12: return Element::F32;
    case 0x10: return Element::F16;
    case 0x11: return Element::BF16;
    case 0x22: return Element::I32;
    case 0x30: return Element::U8;
  }
#elif defined(FAKE_HCCL)
  switch (number) {
    case 4: return Element::F32;
    case 3: return Element::F16;
    case 11: return Element::BF16;
    case 2: return Element::I32;
    case 7: return Element::U8;
  }
#else
  switch (number) {
    case 7: return Element::F32;
    case 6: return Element::F16;
    case 9: return Element::BF16;
    case 2: return Element::I32;
    case 1: return Element::U8;
  }
#endif
  return Element::NONE;
}

#if defined(FAKE_CNCL) || defined(FAKE_HCCL)
const int OPERATIONS = 4;
#else
const int OPERATIONS = 5;
#endif
