#include "nvrtc_cache.hpp"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace {

std::string path_of(const std::string& folder, const std::string& key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : key) hash = (hash ^ byte) * 0x100000001b3;
  char name[32];
  snprintf(name, sizeof name, "/%016llx", (unsigned long long)hash);
  return folder + name;
}

}  // namespace

std::string kept_image(const std::string& folder, const std::string& key) {
  std::ifstream file(path_of(folder, key), std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  return all.size() > key.size() && all.compare(0, key.size(), key) == 0 ? all.substr(key.size()) : "";
}

void keep_image(const std::string& folder, const std::string& key, const std::string& image) {
  std::string written = folder + "/image-XXXXXX";
  const int made = mkstemp(written.data());
  if (made < 0) return;
  close(made);
  std::ofstream file(written, std::ios::binary);
  file << key << image;
  file.close();
  if (!file || rename(written.c_str(), path_of(folder, key).c_str())) unlink(written.c_str());
}
