#!/usr/bin/env python3
"""What words.py counts and names, on a tree with an offence of each kind."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import comments  # noqa: E402
import words  # noqa: E402

_TOOLS = pathlib.Path(__file__).parent
_LONG = " ".join(["word"] * 41) + "."


class Words(unittest.TestCase):
    def test_prose_is_neither_code_nor_table_nor_target(self):
        self.assertEqual(words.prose("# Head\n\nOne [link](of/a/law.md)\nwraps.\n\n```\na law\n```\n"
                                     "| a | law |\n\n- first\n- second\n  wraps\n"),
                         ["One link wraps.", "first", "second wraps"])

    def test_sentences_end_at_their_marks_and_code_is_a_word(self):
        self.assertEqual(words.sentences("It runs `a. b. c`. Then: it ends!"),
                         ["It runs code.", "Then:", "it ends!"])

    def test_adjacent_literals_are_one_text_and_names_are_none(self):
        self.assertEqual(words.literals('f("the first half "\n  "and the second", "one two", "a b");'
                                        ' // "a comment of many words"'),
                         ["the first half and the second"])
        self.assertEqual(words.literals('both("law", "law_s"), shown("a\\nrow", kText)'), ["law", "a\\nrow"])
        self.assertEqual(words.literals('fail("the first half "\n "is here")', python=True),
                         ["the first half is here"])

    def test_each_offence_is_named(self):
        rules = words.banned(_TOOLS.parents[1])
        lengths, lines = words.offences("page", [_LONG, "It is beside the point.", "Plain words."],
                                        rules)
        self.assertEqual(lengths, [41, 5, 2])
        self.assertEqual(len(lines), 2)
        self.assertIn("41 words", lines[0])
        self.assertIn("'beside'", lines[1])

    def test_comments_are_read_by_block(self):
        text = """// Returns the size. What is
// known.
std::size_t size_of(int a);

// Whose.
int Class::held(int a) {
  // `gone_name` is old
  int x = 1;
}
"""
        found, totals = comments.habits_of({"a.h": text})
        figures = dict(zip(comments.LIMITS, comments.figures_of(found, totals).values()))
        self.assertEqual(totals, {"blocks": 3, "functions": 2, "sentences": 4})
        self.assertEqual(figures[comments.VERB_FIRST], 50)
        self.assertEqual(figures["blocks with 'what'"], 100 / 3)
        self.assertEqual(figures["names in backquotes that no code has"], 1)
        self.assertTrue(comments.is_participle("held"))
        self.assertTrue(comments.is_participle("bound_to"))
        self.assertFalse(comments.is_participle("needs"))
        self.assertFalse(comments.is_participle("quoted_name"))

    def test_names_of_tests_are_read(self):
        text = """TEST(Files, OfNoEnd) {}
TEST_F(Files, LieBesideIt) {}
TEST(Files, OftenOpened) {}
"""
        odd = comments.oddly_named_tests({"a_test.cc": text}, comments.banned_words())
        self.assertEqual(odd, ["a_test.cc: Files.OfNoEnd", "a_test.cc: Files.LieBesideIt"])

    def test_a_tree_with_offences_fails(self):
        for text, code in (("Plain words.", 0), ("The strategy pays.", 1), (_LONG, 1),
                           ("Word. " * 901, 1)):
            with tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                (root / "tests/tools").mkdir(parents=True)
                (root / "tests/tools/banned_words.txt").write_text(
                    (_TOOLS / "banned_words.txt").read_text())
                (root / "README.md").write_text(text)
                for command in (["init", "-q"], ["add", "-A"]):
                    subprocess.run(["git", "-C", folder, *command], check=True)
                ran = subprocess.run([sys.executable, _TOOLS / "words.py", folder, "--check"],
                                     capture_output=True, text=True)
                self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
