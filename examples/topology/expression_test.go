package main

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestExpressionIsEvaluated(t *testing.T) {
	for expression, want := range map[string]string{
		"1":                   "1",
		"(17.5 + 4) * 2":      "43",
		"2 + 3 * 4":           "14",
		"2 - 3 - 4":           "-5",
		"100 / 10 / 5":        "2",
		"0.1 + 0.2":           "0.3",
		"1 / 8":               "0.125",
		"2 / 3":               "0.666666666667",
		"-2 ^ 2":              "-4",
		"(-2) ^ 2":            "4",
		"2 ^ 3 ^ 2":           "512",
		"2 ^ -2":              "0.25",
		"0 ^ 0":               "1",
		"-7 % 3":              "-1",
		"7.5 % 2":             "1.5",
		"--3":                 "3",
		"2*-3":                "-6",
		".5 + 1.":             "1.5",
		"\t( ( 1 ) )  ":       "1",
		"2 ^ 200":             "1606938044258990275541962092341162602522202993782792835301376",
		"-1 / 10000000000000": "-0.0000000000001",
		"1 / 3 - 1 / 3":       "0",
	} {
		got, err := evaluate(expression)
		require.NoError(t, err, expression)
		require.Equal(t, want, got, expression)
	}
}

func TestInvalidExpressionIsRejected(t *testing.T) {
	for _, expression := range []string{
		"", " ", "1 +", "(1", "1)", "1 2", "1..2", ".", "a", "1 / 0", "1 % 0", "0 ^ -1", "2 ^ 0.5", "9 ^ 9 ^ 9",
		"7 ^ 9999999999999999999999", "1 + ×", strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500),
		strings.Repeat("-", 500) + "1", strings.Repeat("1", 2000),
	} {
		_, err := evaluate(expression)
		require.Error(t, err, expression)
	}
}

func FuzzExpressionYieldsJSON(f *testing.F) {
	f.Add("(17.5 + 4) * 2 ^ -3 % 5")
	f.Fuzz(func(t *testing.T, expression string) {
		if value, err := evaluate(expression); err == nil {
			require.True(t, jsontext.Value(value).IsValid(), "%q: %s", expression, value)
		}
	})
}
