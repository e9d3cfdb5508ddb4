#!/usr/bin/env python3
"""What measure.py counts, on text small enough to count by hand."""
import sys
import unittest

sys.dont_write_bytecode = True
import measure  # noqa: E402


class Measure(unittest.TestCase):
    def test_types_have_a_name_and_a_body(self):
        self.assertEqual(measure.types_of("""
            struct Outer final : public Base<int> { union Inner { int a; }; };
            struct alignas(16) Word { int bits; };
            enum class Kind { kOne };
            enum Plain : int { kTwo };
            class SYNCLINE_API Visible { };"""), 6)

    def test_what_only_names_a_type_is_none(self):
        self.assertEqual(measure.types_of("""
            class Later;  // struct Comment { };
            using Alias = int;
            template <class T> void take(T value) { struct Later* later = nullptr; }
            const char* text = "struct Quoted { };";"""), 0)

    def test_conflicts_and_choices_of_knobs_exclude(self):
        self.assertEqual(measure.exclusions_of("""
            std::optional<Conflict> of() { return Conflict{"streams", "one stream"}; }
            auto rule = Choice{"rule", {{"index", {"ends"}}}};
            const Exclusion rules[]{Exclusion{"overlap", {"streams"}, "one stream"}};
            struct Conflict { int key; };
            Choice choice{work->kind};
            // Choice{"comment", {}}"""), 3)

    def test_a_room_is_a_folder_and_below_core_one_of_its_own(self):
        self.assertEqual([measure.room_of(path) for path in (
            "core/error.h", "core/job/models/config.h", "reports/chart/scale.h")],
            ["core", "core/job", "reports"])

    def test_a_function_is_as_long_as_its_lines(self):
        functions = measure.functions_of_cpp("int one() {\n  return 1;\n}\n")
        self.assertEqual(functions, [("one", 1, 3)])
        self.assertEqual(measure.over_limit([(3, "one", "a.cc:1")], 3), [])
        self.assertEqual(measure.over_limit([(4, "one", "a.cc:1")], 3), [(4, "one  a.cc:1")])


if __name__ == "__main__":
    unittest.main()
