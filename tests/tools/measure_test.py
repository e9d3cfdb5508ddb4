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
            knob("rule", &Fusion::rule, words(), "How.")
                .enable({{"index", {"ends"}}}),
            knob("overlap", &S::overlap, yes_or_no(), "Whether.").enable({{true, {"streams"}}}),
            struct Conflict { int key; };
            Knob brings(std::vector<Brings> rows) && { return Conflict{}; }
            // Conflict{"comment", ""}"""), 3)

    def test_a_room_is_a_folder_and_below_some_one_of_its_own(self):
        self.assertEqual([measure.room_of(path) for path in (
            "core/plan.h", "core/plan/fusion.h", "imports/models/config.h", "reports/chart/scale.h")],
            ["core", "core/plan", "imports", "reports"])

    def test_classes_are_as_long_as_their_lines(self):
        self.assertEqual(measure.classes_of("struct One;\nclass Two final : public One {\n  int a;\n};\n"),
                         [("Two", 2, 3)])

    def test_content_says_something(self):
        self.assertEqual(measure.content_lines("a.cc", "#include <a>\n\n// b\nint c() {\n}\n"), 1)

    def test_a_function_is_as_long_as_its_lines(self):
        functions = measure.functions_of_cpp("int one() {\n  return 1;\n}\n")
        self.assertEqual(functions, [("one", 1, 3)])
        self.assertEqual(measure.over_limit([(3, "one", "a.cc:1")], 3), [])
        self.assertEqual(measure.over_limit([(4, "one", "a.cc:1")], 3), [(4, "one  a.cc:1")])

    def test_a_type_in_two_headers_shares_its_name(self):
        sources = {"a.h": "struct One {\n  int a;\n};\nclass Later;\n", "b.h": "class One final : Base {\n};\n",
                   "c.h": "struct Outer {\n  struct One {};\n};\n", "d.cc": "struct One {};\n"}
        self.assertEqual(measure.shared_names(sources), {"One": ["a.h", "b.h"]})

    def test_a_header_opens_with_five_lines_at_most(self):
        five = "// a\n// b\n//\n// c\n// d\n#pragma once\n// e\n"
        self.assertEqual(measure.prefaces({"a.h": five, "b.h": "// z\n" + five, "c.cc": "//\n" * 9}),
                         [(6, "b.h")])

    def test_a_private_word_is_found_in_names_alone(self):
        source = 'int PriceBook; int lawful; int the_law; // a law\nauto text = "a law";\n'
        self.assertEqual(measure.private_names({"a.cc": source}, {"law", "book"}),
                         {"PriceBook": "a.cc", "the_law": "a.cc"})


if __name__ == "__main__":
    unittest.main()
