// That the colours can be told apart: also by those who lack a kind of cone, and against the paper.
#include "reports/chart/markup.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syncline::reports::chart {
namespace {

using Triple = std::array<double, 3>;

double linear(double part) {
  return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
}

Triple rgb_of(const std::string& hex) {
  Triple rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    rgb[i] = linear(std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0);
  }
  return rgb;
}

using Matrix = std::array<Triple, 3>;

Triple times(const Matrix& matrix, const Triple& v) {
  Triple result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) result[i] += matrix[i][j] * v[j];
    result[i] = std::clamp(result[i], 0.0, 1.0);
  }
  return result;
}

// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
// Deficiency", 2009, at full severity: everyone, protanopia, deuteranopia, tritanopia.
constexpr Matrix kEyes[] = {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                            {{{0.152286, 1.052583, -0.204868},
                              {0.114503, 0.786281, 0.099216},
                              {-0.003882, -0.048116, 1.051998}}},
                            {{{0.367322, 0.860646, -0.227968},
                              {0.280085, 0.672501, 0.047413},
                              {-0.011820, 0.042940, 0.968881}}},
                            {{{1.255528, -0.076749, -0.178779},
                              {-0.078411, 0.930809, 0.147602},
                              {0.004733, 0.691367, 0.303900}}}};

// CIE 1976 L*a*b* of linear sRGB, D65.
Triple lab_of(const Triple& rgb) {
  const Matrix xyz{{{0.4124564, 0.3575761, 0.1804375},
                    {0.2126729, 0.7151522, 0.0721750},
                    {0.0193339, 0.1191920, 0.9503041}}};
  const Triple white{0.95047, 1, 1.08883};
  Triple f{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double t = (xyz[i][0] * rgb[0] + xyz[i][1] * rgb[1] + xyz[i][2] * rgb[2]) / white[i];
    f[i] = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double apart(const Triple& a, const Triple& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

// A difference of 2.3 is just noticeable side by side; in lines and small bars it takes more.
TEST(Palette, ColoursAreDistinctForAllEyes) {
  for (const auto* hues : {&kOnWhite, &kOnBlack}) {
    for (const auto& eye : kEyes) {
      for (std::size_t a = 0; a < kColours; ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          EXPECT_GT(
              apart(lab_of(times(eye, rgb_of((*hues)[a]))), lab_of(times(eye, rgb_of((*hues)[b])))),
              8)
              << (*hues)[a] << " and " << (*hues)[b] << " to eye " << &eye - kEyes;
        }
      }
    }
  }
}

// Luminance over the paper's, as WCAG has contrast.
double contrast(const std::string& one, const std::string& other) {
  const auto luminance = [](const std::string& hex) {
    const Triple rgb = rgb_of(hex);
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] + 0.05;
  };
  const double a = luminance(one), b = luminance(other);
  return std::max(a, b) / std::min(a, b);
}

TEST(Palette, ColoursContrastWithThePaper) {
  for (const char* hue : kOnWhite) EXPECT_GT(contrast(hue, "#ffffff"), 2) << hue;
  for (const char* hue : kOnBlack) EXPECT_GT(contrast(hue, "#16191d"), 4) << hue;
}

TEST(Palette, ShadesGoOneWay) {
  for (std::size_t i = 1; i < kShades; ++i) {
    EXPECT_GT(contrast(kShadesOnWhite[i], "#ffffff"), contrast(kShadesOnWhite[i - 1], "#ffffff"));
    EXPECT_GT(contrast(kShadesOnBlack[i], "#16191d"), contrast(kShadesOnBlack[i - 1], "#16191d"));
  }
}

using Lines = std::vector<std::string>;

TEST(Lettering, BreaksAtBlanks) {
  const double room = width_of("one two") + 1;
  EXPECT_EQ(lines_of("one two", room), (Lines{"one two"}));
  EXPECT_EQ(lines_of("one two three", room), (Lines{"one two", "three"}));
  EXPECT_EQ(lines_of("", room), (Lines{""}));
}

TEST(Lettering, BreaksWordsThatAreTooWideBetweenLetters) {
  const double room = width_of("aaa") + 1;
  EXPECT_EQ(lines_of("aaaaaaaa", room), (Lines{"aaa", "aaa", "aa"}));
  const std::string umlaut = "\xc3\xa4";
  EXPECT_EQ(lines_of(umlaut + umlaut, width_of(umlaut)), (Lines{umlaut, umlaut}));
}

TEST(Lettering, WideLettersTakeMoreRoom) {
  EXPECT_GT(width_of("WWW"), 2 * width_of("iii"));
  EXPECT_GT(width_of("\xe4\xb8\xad"), width_of("a"));
}

}  // namespace
}  // namespace syncline::reports::chart
