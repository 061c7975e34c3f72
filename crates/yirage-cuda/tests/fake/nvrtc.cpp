// The interface of NVRTC, as much of it as machine code needs.
#include <string.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "api.hpp"
#include "nvrtc_compiler.hpp"
#include "vendor.hpp"

namespace {

enum Result {
  OK = 0,
  INVALID_INPUT = 3,
  INVALID_PROGRAM = 4,
  INVALID_OPTION = 5,
  COMPILATION = 6,
};

const char* const TEXTS[] = {
    COMPILER "_SUCCESS",
    COMPILER "_ERROR_OUT_OF_MEMORY",
    COMPILER "_ERROR_PROGRAM_CREATION_FAILURE",
    COMPILER "_ERROR_INVALID_INPUT",
    COMPILER "_ERROR_INVALID_PROGRAM",
    COMPILER "_ERROR_INVALID_OPTION",
    COMPILER "_ERROR_COMPILATION",
};

struct Program {
  std::string source, name, log, image;
};

std::mutex lock;
std::map<Handle, std::shared_ptr<Program>> programs;

std::shared_ptr<Program> program_of(Handle handle) {
  std::unique_lock<std::mutex> held(lock);
  auto found = programs.find(handle);
  return found == programs.end() ? nullptr : found->second;
}

// A text with the zero behind it.
int give_text(const std::string& text, char* out) {
  memcpy(out, text.c_str(), text.size() + 1);
  return OK;
}

}  // namespace

API int nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return INVALID_INPUT;
  *major = VENDOR.compiler_version[0];
  *minor = VENDOR.compiler_version[1];
  return OK;
}

API const char* nvrtcGetErrorString(int result) {
  return result >= 0 && result < int(std::size(TEXTS)) ? TEXTS[result] : COMPILER "_ERROR unknown";
}

// Compilers of other vendors do not tell what they make code for.
#if !defined(FAKE_VENDOR_HIP) && !defined(FAKE_VENDOR_MUSA) && !defined(FAKE_VENDOR_COREX) && !defined(FAKE_VENDOR_MACA)
API int nvrtcGetNumSupportedArchs(int* count) {
  if (!count) return INVALID_INPUT;
  *count = VENDOR.arch_count;
  return OK;
}

API int nvrtcGetSupportedArchs(int* archs) {
  if (!archs) return INVALID_INPUT;
  std::copy_n(VENDOR.archs, VENDOR.arch_count, archs);
  return OK;
}
#endif

// Headers are not known: kernels include none.
API int nvrtcCreateProgram(Handle* handle, const char* source, const char* name, int headers, const char* const*,
                           const char* const*) {
  if (!handle || !source || headers != 0) return INVALID_INPUT;
  auto program = std::make_shared<Program>();
  program->source = source;
  program->name = name ? name : "default_program";
  std::unique_lock<std::mutex> held(lock);
  static uintptr_t last = 0x100;
  *handle = Handle(last += 8);
  programs[*handle] = program;
  return OK;
}

API int nvrtcDestroyProgram(Handle* handle) {
  if (!handle) return INVALID_PROGRAM;
  std::unique_lock<std::mutex> held(lock);
  if (!programs.erase(*handle)) return INVALID_PROGRAM;
  *handle = nullptr;
  return OK;
}

API int nvrtcCompileProgram(Handle handle, int count, const char* const* given) {
  const std::shared_ptr<Program> program = program_of(handle);
  if (!program) return INVALID_PROGRAM;
  program->log.clear();
  program->image.clear();
  CompileOptions options;
  if (!read_options(count, given, options, program->log)) return INVALID_OPTION;
  if (!compile(program->source, program->name, options, program->image, program->log)) return COMPILATION;
  if (options.is_virtual) program->image.clear();
  return OK;
}

API int nvrtcGetProgramLogSize(Handle handle, size_t* size) {
  const std::shared_ptr<Program> program = program_of(handle);
  if (!program) return INVALID_PROGRAM;
  if (!size) return INVALID_INPUT;
  *size = program->log.size() + 1;
  return OK;
}

API int nvrtcGetProgramLog(Handle handle, char* log) {
  const std::shared_ptr<Program> program = program_of(handle);
  if (!program) return INVALID_PROGRAM;
  return log ? give_text(program->log, log) : INVALID_INPUT;
}

// Nothing for a virtual architecture.
API int nvrtcGetCUBINSize(Handle handle, size_t* size) {
  const std::shared_ptr<Program> program = program_of(handle);
  if (!program) return INVALID_PROGRAM;
  if (!size) return INVALID_INPUT;
  *size = program->image.size();
  return OK;
}

API int nvrtcGetCUBIN(Handle handle, char* image) {
  const std::shared_ptr<Program> program = program_of(handle);
  if (!program) return INVALID_PROGRAM;
  if (!image) return INVALID_INPUT;
  memcpy(image, program->image.data(), program->image.size());
  return OK;
}
