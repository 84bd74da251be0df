package policyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/approval/policyfile"
	"github.com/turntable-streams/turntable/topics"
)

const whole = `
default: allow
read_only: [search, "look_*"]
ttl: 10m
shadow: true
rules:
  - tool: pay
    effect: ask
    edit: true
    dangerous: true
    message: Pay?
    ttl: 1h
    schema: {type: object, required: [cents], properties: {cents: {maximum: 1000}}}
  - tool: "*"
    effect: deny
    args:
      /on: {equals: 2026-11-23}
      /n: {at_least: 1, at_most: 2.5}
      /to: {like: "*@example.com"}
      /x: {}
      /nothing: {equals: null}
`

func TestFileIsReadWhole(t *testing.T) {
	p, err := policyfile.Parse([]byte(whole))
	require.NoError(t, err)
	one, most := 1.0, 2.5
	require.Equal(t, approval.Policy{
		Default: approval.Allow, ReadOnly: []string{"search", "look_*"}, TTL: 10 * time.Minute, Shadow: true,
		Rules: []approval.Rule{
			{
				Tool: "pay", Effect: approval.Ask, Edit: true, Dangerous: true, Message: "Pay?", TTL: time.Hour,
				Schema: topics.Raw(`{"properties":{"cents":{"maximum":1000}},"required":["cents"],"type":"object"}`),
			},
			{Tool: "*", Effect: approval.Deny, Args: map[string]approval.Condition{
				"/on": {Equals: topics.Raw(`"2026-11-23"`)}, "/n": {AtLeast: &one, AtMost: &most},
				"/to": {Like: "*@example.com"}, "/x": {}, "/nothing": {Equals: topics.Raw("null")},
			}},
		},
	}, p)
}

func TestEmptyFileAsksForEveryCall(t *testing.T) {
	for _, content := range []string{"", "\n# nothing\n", "{}"} {
		p, err := policyfile.Parse([]byte(content))
		require.NoError(t, err)
		require.Equal(t, approval.Ask, p.Evaluate(approval.Call{Tool: "read"}).Effect)
	}
}

func TestMistakesAreReportedWithTheirLine(t *testing.T) {
	for content, want := range map[string]string{
		"default: ask\nrulez: []\n":                                 "line 2",
		"default: ask\ndefault: deny\n":                             "line 2",
		"rules:\n  - tool: pay\n    efect: ask\n":                   "line 3",
		"rules:\n  - tool: pay\n    effect: ask\n  - effect: ask\n": "line 4: rule 2: tool: blank",
		"rules:\n  - tool: pay\n    effect: perhaps\n":              "line 2: rule 1: effect",
		"rules:\n  - {tool: a, effect: ask, ttl: soon}\n":           "line 2",
		"ttl: 10\n": "line 1",
		"rules:\n  - {tool: a, effect: ask, args: {cents: {}}}\n":            "line 2: rule 1: args",
		"rules:\n  - {tool: a, effect: ask, args: {/a: {most: 1}}}\n":        "line 2",
		"rules:\n  - {tool: a, effect: ask, edit: true, schema: [1]}\n":      "line 2: rule 1: schema: not a JSON object",
		"rules:\n  - {tool: a, effect: ask, args: {/a: {equals: .nan}}}\n":   "not finite",
		"rules: &r\n  - {tool: a, effect: ask, args: {/a: {equals: *r}}}\n":  "rule",
		"rules:\n  - {tool: a, effect: ask, args: {/a: {at_most: }}}\n":      "at_most: line 2: want a number",
		"rules:\n  - {tool: a, effect: ask, args: {/a: {at_least: many}}}\n": "at_least: line 2: want a number",
		"rules:\n  - {tool: a, effect: ask, args: {/a: {like: }}}\n":         "line 2: like: want a pattern",
		"rules:\n  - {tool: a, effect: ask, args: {/a: {like: [a]}}}\n":      "line 2",
		"ttl: 1m\na: b: c":               "line 2",
		"--- {}\n--- {}\n":               "more than one document",
		strings.Repeat("#", 1<<20) + "#": "more than 1048576 bytes",
	} {
		_, err := policyfile.Parse([]byte(content))
		require.ErrorIs(t, err, approval.ErrPolicy, "%.60s", content)
		require.ErrorContains(t, err, want, "%.60s", content)
	}
}

func TestErrorOfAFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, []byte("default: perhaps\n"), 0o600))
	_, err := policyfile.Read(path)
	require.ErrorIs(t, err, approval.ErrPolicy)
	require.ErrorContains(t, err, path)
	_, err = policyfile.Read(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("rules: &r\n  - *r"))
	f.Add([]byte("rules: [{tool: a, effect: ask, args: {/a: {equals: {a: 1, a: 2}}}}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := policyfile.Parse(content)
		if err != nil {
			require.ErrorIs(t, err, approval.ErrPolicy)
			return
		}
		require.NoError(t, p.Validate())
	})
}
