#include "core/plan/operator_graph.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace syncline::plan {
namespace {

// Adds an operand, one per value: a kernel reads a value once for all its uses of an element.
void merge(std::vector<Operand>& operands, const Operand& operand) {
  for (auto& present : operands) {
    if (present.value != operand.value) continue;
    present.passes = std::max(present.passes, operand.passes);
    return;
  }
  operands.push_back(operand);
}

}  // namespace

OperatorGraph::OperatorGraph(const OperatorList& list)
    : list_(list), writers_(list.values.size(), -1), readers_(list.values.size()) {
  for (int op = 0; op < size(); ++op) {
    for (const auto& output : at(op).outputs) writers_[index(output.value)] = op;
    for (const auto& input : at(op).inputs) {
      auto& readers = readers_[index(input.value)];
      if (readers.empty() || readers.back() != op) readers.push_back(op);
    }
  }
}

int OperatorGraph::only_reader(int value) const {
  const auto& list = readers(value);
  return list.size() == 1 ? list.front() : -1;
}

bool OperatorGraph::reads(int op, int value) const {
  return std::ranges::count(readers(value), op) > 0;
}

void OperatorGraph::forget_reader(int value, int op) { std::erase(readers_[index(value)], op); }

void OperatorGraph::fold(int first, int second, int value, const std::string& kind) {
  assert(writer(value) == first && reads(second, value) && "fold follows an edge of the graph");
  Operator& from = edit(first);
  Operator& into = edit(second);
  const auto link = std::ranges::find(into.inputs, value, &Operand::value);
  // The edge disappears. Passes of `second` over the value after the first become passes over the
  // inputs of `first`.
  const int again = std::max(0, link->passes - 1);
  into.inputs.erase(link);
  forget_reader(value, second);
  const bool kept = !readers(value).empty();

  for (Operand input : from.inputs) {
    if (input.passes > 0) input.passes += again;
    forget_reader(input.value, first);
    if (!reads(second, input.value)) readers_[index(input.value)].push_back(second);
    merge(into.inputs, input);
  }
  // An output that reused the memory of `value` has to be written now.
  for (auto& output : into.outputs) {
    if (output.passes == 0 && !kept) output.passes = 1;
  }
  // Outputs move to the fused operator; `value` only if others read it.
  for (const auto& output : from.outputs) {
    if (output.value == value && !kept) {
      writers_[index(value)] = -1;
      continue;
    }
    writers_[index(output.value)] = second;
    into.outputs.push_back(output);
  }
  into.matrix_flops += from.matrix_flops;
  into.flops += from.flops;
  into.kernels = std::max(into.kernels, from.kernels);
  into.columns = std::max(into.columns, from.columns);
  into.kind = kind;
  from = Operator{};
}

void OperatorGraph::join(const std::vector<int>& ops, const std::string& kind) {
  assert(!ops.empty() && "join needs operators");
  const int first = ops.front();
  for (std::size_t i = 1; i < ops.size(); ++i) {
    Operator& from = edit(ops[i]);
    Operator& into = edit(first);
    for (const auto& input : from.inputs) {
      forget_reader(input.value, ops[i]);
      if (!reads(first, input.value)) readers_[index(input.value)].push_back(first);
      into.inputs.push_back(input);
    }
    for (const auto& output : from.outputs) {
      writers_[index(output.value)] = first;
      into.outputs.push_back(output);
    }
    into.matrix_flops += from.matrix_flops;
    into.flops += from.flops;
    from = Operator{};
  }
  edit(first).kind = kind;
}

void OperatorGraph::replace_input(int op, int old_value, int new_value) {
  Operator& edited = edit(op);
  std::vector<Operand> inputs;
  for (Operand input : edited.inputs) {
    if (input.value == old_value) input.value = new_value;
    merge(inputs, input);
  }
  edited.inputs = std::move(inputs);
  forget_reader(old_value, op);
  if (!reads(op, new_value)) readers_[index(new_value)].push_back(op);
}

// Orders the operators: a fused one has the place of its last part, or moves up before its first
// reader. The stack holds operators that wait for the writers above them.
OperatorList OperatorGraph::finish() && {
  std::vector<Operator> ordered;
  std::vector<char> done(list_.operators.size(), 0);
  for (int op = 0; op < size(); ++op) {
    std::vector<int> stack{op};
    while (!stack.empty()) {
      const int top = stack.back();
      if (done[index(top)] != 0 || at(top).kind.empty()) {
        stack.pop_back();
        continue;
      }
      const std::size_t depth = stack.size();
      for (const auto& input : at(top).inputs) {
        const int from = writer(input.value);
        if (from >= 0 && from != top && done[index(from)] == 0) stack.push_back(from);
      }
      assert(stack.size() <= list_.operators.size() + depth && "operators wait in a circle");
      if (stack.size() > depth) continue;
      done[index(top)] = 1;
      stack.pop_back();
      ordered.push_back(at(top));
    }
  }
  list_.operators = std::move(ordered);
  return std::move(list_);
}

OperatorLink find_link(const OperatorGraph& graph, int op, const std::string& kind) {
  for (const auto& output : graph.at(op).outputs) {
    const int reader = graph.only_reader(output.value);
    if (graph.is(reader, kind)) return {output.value, reader};
  }
  return {};
}

int reader_of_kind(const OperatorGraph& graph, int value, const std::string& kind) {
  for (const int op : graph.readers(value)) {
    if (graph.is(op, kind)) return op;
  }
  return -1;
}

}  // namespace syncline::plan
