#include "nvrtc_source.hpp"

#include <string.h>

#include <algorithm>

namespace {

const size_t NOWHERE = std::string::npos;

std::string trimmed(const std::string& text) {
  const char* space = " \t\r\n";
  const size_t begin = text.find_first_not_of(space);
  return begin == NOWHERE ? "" : text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

// Where the bracket that opens at `open` is closed, or the text's end.
size_t closed(const std::string& text, size_t open, char opening, char closing) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == opening;
    depth -= text[at] == closing;
    if (depth == 0) return at;
  }
  return text.size();
}

// Parts between commas that stand in no bracket.
std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> all(1);
  int depth = 0;
  for (char letter : text) {
    depth += letter && strchr("([{<", letter) != nullptr;
    depth -= letter && strchr(")]}>", letter) != nullptr;
    if (letter == ',' && depth == 0)
      all.emplace_back();
    else
      all.back() += letter;
  }
  for (std::string& part : all) part = trimmed(part);
  return all;
}

// `float x[64]` as the type `float[64]`.
std::string type_of(const std::string& declared) {
  const size_t array = std::min(declared.find('['), declared.size());
  std::string type = trimmed(declared.substr(0, array));
  while (!type.empty() && (isalnum((unsigned char)type.back()) || type.back() == '_')) type.pop_back();
  return trimmed(type) + declared.substr(array);
}

std::vector<std::string> shared_of(const std::string& body) {
  const std::string word = "__shared__";
  std::vector<std::string> all;
  for (size_t at = body.find(word); at != NOWHERE; at = body.find(word, at + 1)) {
    const size_t begin = at + word.size();
    all.push_back(type_of(trimmed(body.substr(begin, body.find(';', begin) - begin))));
  }
  return all;
}

bool is_named_by_itself(const std::string& before) {
  const std::string text = trimmed(before), wanted = "extern \"C\"";
  return text.size() >= wanted.size() && text.compare(text.size() - wanted.size(), wanted.size(), wanted) == 0;
}

}  // namespace

std::vector<SourceKernel> kernels_of(const std::string& source) {
  const std::string word = "__global__", bounds = "__launch_bounds__";
  std::vector<SourceKernel> all;
  for (size_t at = source.find(word); at != NOWHERE; at = source.find(word, at + 1)) {
    if (!is_named_by_itself(source.substr(at < 40 ? 0 : at - 40, at < 40 ? at : 40))) continue;
    SourceKernel kernel = {"", "1024", 0, {}};
    size_t open = source.find('(', at);
    const size_t bound = source.find(bounds, at);
    if (bound < open) {
      const size_t end = closed(source, open, '(', ')');
      kernel.threads = parts(source.substr(open + 1, end - open - 1))[0];
      open = source.find('(', end);
    }
    if (open == NOWHERE) continue;
    const size_t end = closed(source, open, '(', ')'), body = source.find_first_of(";{", end);
    if (body == NOWHERE || source[body] == ';') continue;
    const std::string head = trimmed(source.substr(at, open - at));
    kernel.name = head.substr(head.find_last_of(" \t\r\n)*") + 1);
    const std::string parameters = trimmed(source.substr(open + 1, end - open - 1));
    kernel.parameters = parameters.empty() || parameters == "void" ? 0 : int(parts(parameters).size());
    kernel.shared = shared_of(source.substr(body, closed(source, body, '{', '}') - body));
    all.push_back(kernel);
  }
  return all;
}

std::string table_of(const std::vector<SourceKernel>& kernels, size_t most_shared) {
  const std::string most = std::to_string(most_shared);
  std::string out, table;
  for (size_t at = 0; at < kernels.size(); ++at) {
    const SourceKernel& kernel = kernels[at];
    const std::string number = std::to_string(at);
    std::string given, shared = "0";
    for (int parameter = 0; parameter < kernel.parameters; ++parameter)
      given += (parameter ? ", " : "") + ("ModuleParameter{p[" + std::to_string(parameter) + "].memory}");
    for (const std::string& type : kernel.shared) shared += " + sizeof(" + type + ")";
    out += "static void run_" + number + "(const emulator::Buffer* p) { " + kernel.name + "(" + given + "); }\n";
    out += "static_assert(" + shared + " <= " + most + ", \"`" + kernel.name + "` uses too much shared data (" + most +
           " bytes max)\");\n";
    table += "  {\"" + kernel.name + "\", " + kernel.threads + ", " + shared + ", ModuleParameters<decltype(" + kernel.name +
             ")>::count, ModuleParameters<decltype(" + kernel.name + ")>::sizes, ModuleParameters<decltype(" + kernel.name +
             ")>::writes, run_" + number + "},\n";
  }
  return out + "const ModuleKernel module_kernels[] = {\n" + table + "  {nullptr, 0, 0, 0, nullptr, nullptr, nullptr}};\n";
}
