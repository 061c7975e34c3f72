#include "nvrtc_compiler.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "image.hpp"
#include "nvrtc_cache.hpp"
#include "nvrtc_source.hpp"
#include "vendor.hpp"

extern char** environ;

namespace {

// The folder that this library lies in, with the headers and the two objects that every module has.
std::string own_folder() {
  Dl_info info;
  if (!dladdr((void*)own_folder, &info)) return ".";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

struct Folder {
  std::string path;

  Folder() {
    const char* root = getenv("TMPDIR");
    path = std::string(root ? root : "/tmp") + "/fake-nvrtc-XXXXXX";
    if (!mkdtemp(path.data())) path.clear();
  }
  ~Folder() {
    for (const char* name : {"/kernels.cpp", "/kernels.so", "/log"}) unlink((path + name).c_str());
    rmdir(path.c_str());
  }
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

// Whether `$CXX`, or `c++`, ends well. What it says goes to a file.
bool run_compiler(const std::vector<std::string>& arguments, const std::string& log) {
  const char* program = getenv("CXX");
  if (!program) program = "c++";
  std::vector<char*> words = {(char*)program};
  for (const std::string& argument : arguments) words.push_back((char*)argument.c_str());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  const int error = posix_spawnp(&child, program, &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) {
    std::ofstream(log) << program << ": " << strerror(error) << "\n";
    return false;
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The value of an option in the form `NAME=VALUE`.
bool is_option(const std::string& option, const char* name, std::string& value) {
  const size_t length = strlen(name);
  if (option.compare(0, length, name) || option.size() <= length || option[length] != '=') return false;
  value = option.substr(length + 1);
  return true;
}

// An option of one architecture, and then whether that is known.
bool read_arch(const std::string& option, CompileOptions& options, bool& is_known) {
  for (const char* const* name = VENDOR.arch_options; *name; ++name)
    if (is_option(option, *name, options.arch)) {
      is_known = VENDOR.is_arch(options.arch, options.is_virtual);
      return true;
    }
  return false;
}

bool read_contract(const std::string& option, CompileOptions& options) {
  for (const ContractOption* one = VENDOR.contract_options; one->text; ++one)
    if (option == one->text) {
      options.contract = one->contract;
      return true;
    }
  return false;
}

bool read_definition(const std::string& option, CompileOptions& options) {
  std::string value;
  if (is_option(option, "--define-macro", value))
    options.definitions.push_back("-D" + value);
  else if (option.compare(0, 2, "-D") == 0 && option.size() > 2)
    options.definitions.push_back(option);
  else
    return false;
  return true;
}

bool read_option(const std::string& option, CompileOptions& options) {
  bool is_known = true;
  if (read_arch(option, options, is_known)) return is_known;
  if (read_contract(option, options) || read_definition(option, options)) return true;
  for (const char* const* other = VENDOR.other_options; *other; ++other)
    if (option == *other) return true;
  return false;
}

}  // namespace

bool read_options(int count, const char* const* given, CompileOptions& options, std::string& log) {
  if (VENDOR.compiled_arch) options.arch = VENDOR.compiled_arch;
  for (int at = 0; at < count; ++at) {
    if (!read_option(given[at], options)) {
      log = std::string(COMPILER ": error: invalid value or unknown option: ") + given[at] + "\n";
      return false;
    }
    options.all += std::string(at ? " " : "") + given[at];
  }
  if (options.arch.empty()) log = std::string(COMPILER ": error: no ") + VENDOR.arch_options[0] + " is given\n";
  return !options.arch.empty();
}

namespace {

// What the compiler is told beside its files.
std::vector<std::string> words_of(const CompileOptions& options, const std::string& own) {
  std::vector<std::string> words = {"@" + own + "/options", "-fPIC", "-shared", "-fvisibility=hidden", "-I" + own};
  words.push_back("-DEMULATED_SUBGROUP=" + std::to_string(VENDOR.subgroup(options.arch)) + "u");
  // An unoptimised product and its sum are two operations whatever the options say.
  if (options.contract) words.insert(words.end(), {"-O1", "-ffp-contract=fast"});
#if defined(__x86_64__)
  if (options.contract) words.push_back("-mfma");
#endif
  words.insert(words.end(), options.definitions.begin(), options.definitions.end());
  return words;
}

ImageHeader header_of(const CompileOptions& options, size_t bytes) {
  ImageHeader header = {};
  memcpy(header.magic, IMAGE_MAGIC, sizeof header.magic);
  header.bytes = bytes;
  strncpy(header.arch, options.arch.c_str(), sizeof header.arch - 1);
  strncpy(header.options, options.all.c_str(), sizeof header.options - 1);
  return header;
}

}  // namespace

bool compile(const std::string& source, const std::string& name, const CompileOptions& options, std::string& image,
             std::string& log) {
  const std::string own = own_folder(), images = own + "/images";
  const std::string headers = std::string("#include \"module.hpp\"\n#include \"") + VENDOR.header + "\"\n";
  const std::string text = headers + "#line 1 \"" + name + "\"\n" + source + "\n#line 1 \"the table of kernels\"\n" +
                           table_of(kernels_of(source), VENDOR.shared);
  const std::string key = options.all + "\n" + text + '\0';
  image = kept_image(images, key);
  if (!image.empty()) return true;
  Folder folder;
  const std::string made = folder.path + "/kernels.so", written = folder.path + "/kernels.cpp";
  std::ofstream(written) << text;
  std::vector<std::string> words = words_of(options, own);
  words.insert(words.end(), {written, own + "/module.o", own + "/grid.o", "-lm", "-o", made});
  const bool whole = run_compiler(words, folder.path + "/log");
  log = contents(folder.path + "/log");
  if (!whole) return false;
  const std::string library = contents(made);
  const ImageHeader header = header_of(options, library.size());
  image = std::string((const char*)&header, sizeof header) + library;
  keep_image(images, key, image);
  return true;
}
