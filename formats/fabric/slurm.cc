#include "formats/fabric/files.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "core/base/error.h"

namespace syncline::fabric {
namespace {

constexpr std::size_t kMostHosts = 1 << 17;

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "01-03" -> 01, 02, 03: as many digits as the first has.
std::vector<std::string> numbers_listed(std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string first(range.substr(0, dash));
  const std::string last(dash == range.npos ? range : range.substr(dash + 1));
  if (!all_digits(first) || !all_digits(last) || std::stoi(last) < std::stoi(first) ||
      at(std::stoi(last) - std::stoi(first)) > kMostHosts) {
    throw InputError("'" + std::string(range) + "' is no range of numbers");
  }
  std::vector<std::string> numbers;
  for (int each = std::stoi(first); each <= std::stoi(last); ++each) {
    std::string number = std::to_string(each);
    number.insert(0, first.size() > number.size() ? first.size() - number.size() : 0, '0');
    numbers.push_back(number);
  }
  return numbers;
}

// Parts between commas that stand in no bracket.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int open = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++open;
    if (i < list.size() && list[i] == ']') --open;
    if (i < list.size() && (list[i] != ',' || open > 0)) continue;
    if (i > begin) parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

// The names that a part with at most a few brackets stands for.
void expand(std::string_view part, const std::string& before, std::vector<std::string>& names) {
  const std::size_t open = part.find('[');
  const std::size_t close = part.find(']');
  if (open == part.npos && close == part.npos) {
    names.push_back(before + std::string(part));
    if (names.size() > kMostHosts) throw InputError("more than 2^17 names");
    return;
  }
  if (open == part.npos || close == part.npos || close < open) {
    throw InputError("'" + std::string(part) + "' has a bracket without its other one");
  }
  for (const std::string_view range : parts_of(part.substr(open + 1, close - open - 1))) {
    for (const std::string& number : numbers_listed(range)) {
      expand(part.substr(close + 1), before + std::string(part.substr(0, open)) + number, names);
    }
  }
}

struct Line {
  std::vector<std::string> names;
  std::vector<std::string> switches;
  std::vector<std::string> nodes;
};

Line read_line(const std::string& text) {
  Line line;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) throw InputError("'" + word + "' is no KEY=VALUE");
    std::string key = word.substr(0, equals);
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string value = word.substr(equals + 1);
    if (key == "switchname") line.names = hosts_listed(value);
    if (key == "switches") line.switches = hosts_listed(value);
    if (key == "nodes") line.nodes = hosts_listed(value);
  }
  if (line.names.size() != 1) throw InputError("expected one SwitchName");
  if (line.switches.empty() == line.nodes.empty()) {
    throw InputError("switch " + line.names.front() + " needs Switches or Nodes, one of both");
  }
  return line;
}

class SlurmReader {
 public:
  void add(const Line& line) {
    const int here = number_of(line.names.front());
    for (const std::string& below : line.switches) {
      Switch& lower = out_.switches[at(number_of(below))];
      if (lower.inside >= 0) throw InputError("switch " + below + " is below two switches");
      lower.inside = here;
    }
    for (const std::string& node : line.nodes) {
      if (!seen_.try_emplace(node, here).second) {
        throw InputError("node " + node + " is below two switches");
      }
      out_.names.push_back(node);
      out_.plugs.push_back(here);
    }
  }

  // Counts the nodes below each switch, and joins it with the one above.
  Topology finish(BytesPerSecond port, double oversubscription) {
    Topology& topology = out_;
    topology.kind = "slurm";
    std::vector<double> below(topology.switches.size(), 0);
    for (const int leaf : topology.plugs) {
      std::size_t steps = 0;
      for (int each = leaf; each >= 0; each = topology.switches[at(each)].inside) {
        ++below[at(each)];
        if (++steps > below.size()) throw InputError("switches are below each other in a circle");
      }
    }
    for (std::size_t id = 0; id < topology.switches.size(); ++id) {
      const int above = topology.switches[id].inside;
      if (above < 0) continue;
      FabricLink link{static_cast<int>(id), above, below[id] * port / oversubscription,
                      topology.switches[at(above)].name};
      link.area = link.from;
      join(topology, link);
    }
    take_all_nodes(topology);
    return std::move(out_);
  }

 private:
  // Switches are numbered as they are met.
  int number_of(const std::string& name) {
    const auto [it, fresh] = known_.try_emplace(name, static_cast<int>(out_.switches.size()));
    if (fresh) out_.switches.push_back({name});
    return it->second;
  }

  Topology out_;
  std::map<std::string, int> known_;  // switches by name
  std::map<std::string, int> seen_;   // nodes
};

}  // namespace

void for_each_line(const std::string& text, const std::function<void(const std::string&)>& add) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      add(line);
    } catch (const InputError& error) {
      throw InputError("line " + std::to_string(number) + ": " + error.what());
    }
  }
}

std::vector<std::string> hosts_listed(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view part : parts_of(list)) expand(part, "", names);
  return names;
}

Topology slurm_fabric(const std::string& text, BytesPerSecond node_port, double oversubscription) {
  SlurmReader reader;
  for_each_line(text, [&](const std::string& whole) {
    const std::string line = whole.substr(0, whole.find('#'));
    if (line.find_first_not_of(" \t\r") != line.npos) reader.add(read_line(line));
  });
  return reader.finish(node_port, oversubscription);
}

}  // namespace syncline::fabric
