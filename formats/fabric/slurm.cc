#include "formats/fabric/files.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/fabric/kinds.h"
#include "formats/json/text.h"
#include "formats/text/limits.h"
#include "formats/text/visible.h"

namespace syncline::fabric {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Range of numbers "01-03": 1 to 3, padded to the digits of the first.
struct Numbers {
  int first = 0;
  int last = 0;
  std::size_t digits = 0;

  std::size_t size() const { return at(last - first) + 1; }
  std::string text(int number) const {
    std::string text = std::to_string(number);
    text.insert(0, digits > text.size() ? digits - text.size() : 0, '0');
    return text;
  }
};

Numbers numbers_of(std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string first(range.substr(0, dash));
  const std::string last(dash == range.npos ? range : range.substr(dash + 1));
  if (!all_digits(first) || !all_digits(last) || std::stoi(last) < std::stoi(first)) {
    throw InputError("'" + shorten_text(range) + "' is no range of numbers");
  }
  return {std::stoi(first), std::stoi(last), first.size()};
}

// Returns the parts between commas that are in no bracket.
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

// An entry of a host list: brackets of numbers and the letters around them. It knows the number of
// its names, at most `most`, and their length before it makes any.
class Part {
 public:
  Part(std::string_view text, std::size_t most) : whole_(text), most_(most) {
    while (true) {
      const std::size_t open = text.find('[');
      const std::size_t close = text.find(']');
      if (open == text.npos && close == text.npos) break;
      if (open == text.npos || close == text.npos || close < open) {
        fail("has a bracket without its other one");
      }
      add(text.substr(0, open), text.substr(open + 1, close - open - 1));
      text.remove_prefix(close + 1);
    }
    behind_ = text;
    lengthen(text.size());
  }

  std::size_t size() const { return size_; }

  // Returns the name at that place; the last bracket counts fastest.
  std::string name(std::size_t place) const {
    std::string text;
    std::size_t turn = size_;
    for (const std::vector<std::string>& choices : choices_) {
      turn /= choices.size();
      text += choices[place / turn];
      place %= turn;
    }
    return text + std::string(behind_);
  }

 private:
  void add(std::string_view before, std::string_view inside) {
    std::vector<Numbers> ranges;
    std::size_t count = 0;
    std::size_t longest = 0;
    for (const std::string_view range : parts_of(inside)) {
      const Numbers& numbers = ranges.emplace_back(numbers_of(range));
      count += numbers.size();
      longest = std::max(longest, numbers.text(numbers.last).size());
    }
    if (ranges.empty()) fail("has an empty bracket");
    if (count > most_ || count * size_ > most_) throw InputError("more than 2^17 names");
    size_ *= count;
    lengthen(before.size() + longest);
    std::vector<std::string>& choices = choices_.emplace_back();
    for (const Numbers& numbers : ranges) {
      for (int each = numbers.first; each <= numbers.last; ++each) {
        choices.push_back(std::string(before) + numbers.text(each));
      }
    }
  }

  void lengthen(std::size_t letters) {
    length_ += letters;
    if (length_ > kLongestName) fail("expands to names of more than 255 letters");
  }

  [[noreturn]] void fail(const char* what) const {
    throw InputError("'" + shorten_text(whole_) + "' " + what);
  }

  std::string_view whole_;
  std::string_view behind_;
  std::vector<std::vector<std::string>> choices_;  // by bracket, with the letters before it
  std::size_t most_;
  std::size_t size_ = 1;
  std::size_t length_ = 0;
};

std::vector<std::string> names_listed(std::string_view list, std::size_t most) {
  std::vector<std::string> names;
  for (const std::string_view text : parts_of(list)) {
    if (names.size() == most) throw InputError("more than 2^17 names");
    const Part part(text, most - names.size());
    for (std::size_t place = 0; place < part.size(); ++place) names.push_back(part.name(place));
  }
  return names;
}

struct Line {
  std::vector<std::string> names;
  std::vector<std::string> switches;
  std::vector<std::string> nodes;
  bool block = false;  // of the plugin topology/block
};

// Returns true for Slurm's newer file, topology.yaml.
bool is_yaml(const std::string& text) {
  const std::size_t first = text.find_first_not_of("- \t\r\n");
  return first != text.npos && text.compare(first, 9, "topology:") == 0;
}

// Reads a line that names at most `left` switches and nodes.
Line read_line(const std::string& text, std::size_t left) {
  Line line;
  std::istringstream words(text);
  std::string word;
  bool shown = false;  // by `scontrol show topology`, which lists all nodes below a switch
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) throw InputError("'" + shorten_text(word) + "' is no KEY=VALUE");
    std::string key = word.substr(0, equals);
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string value = word.substr(equals + 1);
    // Sizes of blocks say how jobs are placed, and groups of blocks repeat their nodes.
    if (key == "blocksizes" || key == "aggregatedblock") return {};
    line.block = line.block || key == "blockname";
    shown = shown || key == "level";
    if (key == "switchname" || key == "blockname") line.names = names_listed(value, left);
    if (key == "switches") line.switches = names_listed(value, left);
    if (key == "nodes") line.nodes = names_listed(value, left);
  }
  if (line.names.size() != 1) throw InputError("expected one SwitchName or BlockName");
  if (shown && !line.switches.empty()) line.nodes.clear();
  if (line.switches.empty() == line.nodes.empty()) {
    throw InputError("switch " + line.names.front() + " needs Switches or Nodes, one of both");
  }
  return line;
}

// Joins the lines. Refuses switches with two lines or none, as Slurm does
// (switch_record_validate in src/plugins/topology/tree of SchedMD/slurm 0c9a3f79).
class SlurmReader {
 public:
  // Returns the nodes that a fabric may still have.
  std::size_t left() const { return at(kMaxNodes) - out_.plugs.size(); }

  void add(const Line& line) {
    if (line.names.empty()) return;
    if (line.block) blocks_.push_back(line.names.front());
    if (joins_spine(line)) return;
    const int here = number_of(line.names.front());
    if (!defined_.insert(here).second) {
      throw InputError((line.block ? "block " : "switch ") + line.names.front() +
                       " is defined twice");
    }
    if (!line.switches.empty()) spines_.emplace(line.switches, here);
    for (const std::string& below : line.switches) {
      Switch& lower = out_.switches[at(number_of(below))];
      if (lower.inside >= 0 && lower.inside != here) {
        throw InputError("switch " + below + " is below two switches, which differ in others");
      }
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
    // The file does not say how blocks are joined: one switch above all is taken.
    if (blocks_.size() > 1) add({{"between blocks"}, std::exchange(blocks_, {}), {}});
    for (const auto& [name, id] : known_) {
      if (!defined_.contains(id)) throw InputError("switch " + name + " has no line of its own");
    }
    Topology& topology = out_;
    topology.kind = "slurm";
    std::vector<double> below(topology.switches.size(), 0);
    for (const int leaf : topology.plugs) ++below[at(leaf)];
    below = sum_upwards(topology, std::move(below));
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
  // Returns true for a further spine above the same switches: it shares their uplinks, so all of
  // them count as one.
  bool joins_spine(const Line& line) {
    const auto first = spines_.find(line.switches);
    const std::string& name = line.names.front();
    if (first == spines_.end() || known_.contains(name)) return false;
    known_.emplace(name, first->second);
    return true;
  }

  // Numbers switches as they are met.
  int number_of(const std::string& name) {
    const auto [it, fresh] = known_.try_emplace(name, static_cast<int>(out_.switches.size()));
    if (fresh) out_.switches.push_back({name});
    expect_buildable({0, static_cast<double>(out_.switches.size()), 0});
    return it->second;
  }

  Topology out_;
  std::map<std::string, int> known_;                // switches by name
  std::map<std::string, int> seen_;                 // nodes
  std::set<int> defined_;                           // switches with a line of their own
  std::map<std::vector<std::string>, int> spines_;  // switches by those below them
  std::vector<std::string> blocks_;
};

// Returns the text of a member that is one, else "".
std::string word_of(const Json& object, const char* key) {
  const bool there = object.is_object() && object.contains(key) && object[key].is_string();
  return there ? object[key].get<std::string>() : std::string();
}

const Json& list_of(const Json& object, const char* key) {
  static const Json none = Json::array();
  const bool there = object.is_object() && object.contains(key) && object[key].is_array();
  return there ? object[key] : none;
}

// Returns the topology that jobs get by default: the one marked so, else the first.
const Json& default_topology(const Json& file) {
  if (!file.is_array() || file.empty()) throw InputError("expected a list of topologies");
  for (const Json& one : file) {
    if (one.is_object() && one.contains("cluster_default") && one["cluster_default"] == true) {
      return one;
    }
  }
  return file.front();
}

void read_yaml(const std::string& text, SlurmReader& reader) {
  const Json file = parse_yaml("topology.yaml", text);
  const Json& one = default_topology(file);
  const std::string name = "topology '" + shorten_text(word_of(one, "topology")) + "'";
  const bool tree = one.is_object() && one.contains("tree");
  if (!tree && !(one.is_object() && one.contains("block"))) {
    throw InputError(name + " is flat: it names no switches; expected tree or block");
  }
  const char* key = tree ? "switch" : "block";
  for (const Json& entry : list_of(one[tree ? "tree" : "block"], tree ? "switches" : "blocks")) {
    const auto names = [&](const char* of) {
      const std::string list = word_of(entry, of);
      return list.empty() ? std::vector<std::string>() : names_listed(list, reader.left());
    };
    Line line{names(key), names("children"), names("nodes"), !tree};
    if (line.names.size() != 1) throw InputError(name + ": expected a list of " + key + " NAME");
    if (line.switches.empty() == line.nodes.empty()) {
      throw InputError("switch " + line.names.front() + " needs children or nodes, one of both");
    }
    reader.add(line);
  }
  if (reader.left() == at(kMaxNodes)) throw InputError(name + " names no nodes");
}

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
  return names_listed(list, at(kMaxNodes));
}

Topology slurm_fabric(const std::string& text, BytesPerSecond node_port, double oversubscription) {
  SlurmReader reader;
  if (is_yaml(text)) {
    read_yaml(text, reader);
    return reader.finish(node_port, oversubscription);
  }
  for_each_line(text, [&](const std::string& whole) {
    const std::string line = whole.substr(0, whole.find('#'));
    if (line.find_first_not_of(" \t\r") != line.npos) reader.add(read_line(line, reader.left()));
  });
  return reader.finish(node_port, oversubscription);
}

}  // namespace syncline::fabric
