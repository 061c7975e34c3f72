#include "settings.hpp"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <map>

#include "vendor.hpp"

namespace {

typedef std::map<std::string, std::string> Lines;

Lines read_file() {
  Lines lines;
  Dl_info info;
  if (!dladdr((void*)read_settings, &info)) return lines;
  const std::string library = info.dli_fname;
  std::ifstream file(library.substr(0, library.rfind('/')) + "/settings");
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) lines[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return lines;
}

std::string text(const Lines& lines, const char* name) {
  const auto line = lines.find(name);
  if (line != lines.end()) return line->second;
  const char* variable = getenv(name);
  return variable ? variable : "";
}

// A number; a text that is none ends the process, since a test would prove nothing with another.
unsigned long long number(const Lines& lines, const char* name, unsigned long long otherwise) {
  const std::string said = text(lines, name);
  if (said.empty()) return otherwise;
  char* end;
  const unsigned long long value = strtoull(said.c_str(), &end, 10);
  if (*end) {
    fprintf(stderr, "fake " PLATFORM ": %s is `%s`: expected a number\n", name, said.c_str());
    abort();
  }
  return value;
}

}  // namespace

Settings read_settings() {
  const Lines lines = read_file();
  Settings settings;
  settings.devices = int(number(lines, "FAKE_CUDA_DEVICES", 1));
  settings.memory = size_t(number(lines, "FAKE_CUDA_MEMORY", 8ull << 30));
  settings.multiprocessors = int(number(lines, "FAKE_CUDA_MULTIPROCESSORS", 0));
  settings.seed = number(lines, "FAKE_CUDA_SEED", 1);
  settings.version = int(number(lines, "FAKE_CUDA_VERSION", VENDOR.version));
  settings.arch = text(lines, "FAKE_CUDA_ARCH");
  if (settings.arch.empty()) settings.arch = VENDOR.arch;
  settings.fail = text(lines, "FAKE_CUDA_FAIL");
  return settings;
}
