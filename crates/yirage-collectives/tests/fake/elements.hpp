// What becomes of elements. Sums are made from the last rank to the first, each rounded to the type: another order than that of
// this project, as a maker's may be.
#pragma once

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "names.hpp"

inline size_t bytes_of(Element element) {
  switch (element) {
    case Element::F32:
    case Element::I32: return 4;
    case Element::F16:
    case Element::BF16: return 2;
    default: return 1;
  }
}

inline float from_half(uint16_t bits) {
  const int sign = bits >> 15, exponent = bits >> 10 & 31, fraction = bits & 1023;
  float value;
  if (exponent == 31)
    value = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(float(fraction), -24);
  else
    value = std::ldexp(float(fraction | 1024), exponent - 25);
  return sign ? -value : value;
}

// To the nearest, of two the even one.
inline uint16_t to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (size >= 65520.f) return sign | 0x7c00;
  int exponent;
  std::frexp(size, &exponent);
  const int step = std::max(exponent - 11, -24);
  const uint32_t units = uint32_t(std::nearbyint(std::ldexp(size, -step)));
  if (units == 0) return sign;
  if (step == -24) return uint16_t(sign | units);
  return uint16_t(sign + ((step + 24) << 10) + units);
}

inline float from_brain(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

inline uint16_t to_brain(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (std::isnan(value)) return 0x7fc0;
  bits += 0x7fff + (bits >> 16 & 1);
  return uint16_t(bits >> 16);
}

template <class T>
T combined(int operation, T a, T b) {
  switch (operation) {
    case 1: return T(a * b);
    case 2: return a > b ? a : b;
    case 3: return a < b ? a : b;
    default: return T(a + b);
  }
}

// The elements of all ranks at one place.
inline float reduced_float(int operation, const std::vector<float>& all, float (*round)(float)) {
  float value = all.back();
  for (size_t at = all.size() - 1; at-- > 0;) value = round(combined(operation, value, all[at]));
  return operation == 4 ? round(value / float(all.size())) : value;
}

template <class T, class Wide>
T reduced_integer(int operation, const std::vector<T>& all) {
  Wide value = Wide(all.back());
  for (size_t at = all.size() - 1; at-- > 0;) value = Wide(combined<Wide>(operation, value, Wide(all[at])));
  return operation == 4 ? T(value / Wide(all.size())) : T(value);
}

inline float same(float value) { return value; }
inline float as_half(float value) { return from_half(to_half(value)); }
inline float as_brain(float value) { return from_brain(to_brain(value)); }

// `count` elements of every rank, which begin at `parts`, into `to`.
inline void reduce(Element element, int operation, const std::vector<const char*>& parts, size_t count, char* to) {
  for (size_t at = 0; at < count; ++at) {
    std::vector<float> floats;
    std::vector<int32_t> ints;
    std::vector<uint8_t> bytes;
    for (const char* part : parts) {
      uint16_t half;
      switch (element) {
        case Element::F32: floats.push_back(0), memcpy(&floats.back(), part + at * 4, 4); break;
        case Element::F16: memcpy(&half, part + at * 2, 2), floats.push_back(from_half(half)); break;
        case Element::BF16: memcpy(&half, part + at * 2, 2), floats.push_back(from_brain(half)); break;
        case Element::I32: ints.push_back(0), memcpy(&ints.back(), part + at * 4, 4); break;
        default: bytes.push_back(uint8_t(part[at]));
      }
    }
    if (element == Element::F32) {
      const float value = reduced_float(operation, floats, same);
      memcpy(to + at * 4, &value, 4);
    } else if (element == Element::F16) {
      const uint16_t value = to_half(reduced_float(operation, floats, as_half));
      memcpy(to + at * 2, &value, 2);
    } else if (element == Element::BF16) {
      const uint16_t value = to_brain(reduced_float(operation, floats, as_brain));
      memcpy(to + at * 2, &value, 2);
    } else if (element == Element::I32) {
      const int32_t value = reduced_integer<int32_t, int64_t>(operation, ints);
      memcpy(to + at * 4, &value, 4);
    } else {
      to[at] = char(reduced_integer<uint8_t, int64_t>(operation, bytes));
    }
  }
}
