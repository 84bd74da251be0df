package channel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const whole = `
accounts:
  - channel: slack
    name: main
    agent: front
    prompt: Answer briefly.
    dm: allowed_only
    group: all
    allowed: [U1, 007]
    approvers: &people [U1]
    rate_limit: 20
    threading: true
    format: plain_text
    prefix: bold_bracket
    quiet_errors: true
  - {channel: telegram, name: bot.1, approvers: *people}
bindings:
  - {agent: ops, channel: slack, account: main, peer: U7, guild: T1, channel_id: -10042, roles: [admin, oncall]}
agents:
  - {name: front, description: Answers first.}
  - name: ops
default_agent: ops
`

func TestFileIsRead(t *testing.T) {
	s, err := ParseSettings([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, &Settings{
		Accounts: []Account{
			{
				Channel: "slack", Name: "main", Agent: "front", Prompt: "Answer briefly.", DM: DMAllowedOnly,
				Group: GroupAll, Allowed: []string{"U1", "007"}, Approvers: []string{"U1"}, RateLimit: 20,
				Threading: true, Format: text.Plain, Prefix: PrefixBoldBracket, QuietErrors: true,
			},
			{
				Channel: "telegram", Name: "bot.1", DM: DMRespond, Group: GroupMentionOnly,
				Approvers: []string{"U1"}, Prefix: PrefixOff,
			},
		},
		Bindings: []Binding{{
			Agent: "ops", Channel: "slack", Account: "main", Peer: "U7", Guild: "T1", ChannelID: "-10042",
			Roles: []string{"admin", "oncall"},
		}},
		Agents:       []Agent{{Name: "front", Description: "Answers first."}, {Name: "ops"}},
		DefaultAgent: "ops",
	}, s)
	for _, content := range []string{"", "\n# nothing\n", "{}", "---\n", "null"} {
		s, err := ParseSettings([]byte(content))
		require.NoError(t, err, "%q", content)
		require.Equal(t, &Settings{}, s)
	}
}

func TestAccountIsFoundByChannelAndName(t *testing.T) {
	s, err := ParseSettings([]byte(whole))
	require.NoError(t, err)
	account, ok := s.Account("slack", "main")
	require.True(t, ok)
	require.Equal(t, 20, account.RateLimit)
	for _, other := range [][2]string{{"slack", "bot.1"}, {"telegram", "main"}, {"", ""}, {"Slack", "main"}} {
		_, ok = s.Account(other[0], other[1])
		require.False(t, ok, other)
	}
	live := Fixed(s)
	require.Equal(t, "Answer briefly.", live.Prompt(topics.Origin{Channel: "slack", Account: "main"}))
	require.Empty(t, live.Prompt(topics.Origin{Channel: "slack", Account: "other"}))
}

func TestSettingsNameTheLineOfAMistake(t *testing.T) {
	const agents = "agents: [{name: a}]\ndefault_agent: a\n"
	for content, want := range map[string]string{
		"agents: []\nacounts: []\n":                                                     "line 2: unknown member",
		"agents:\n  - name: a\n  - name: a\n":                                           "line 3: name: repeated",
		"agents:\n  - name: a b\n":                                                      "line 2: name: no topics",
		"agents:\n  - description: x\n":                                                 "line 2: name: missing",
		"default_agent: b\n":                                                            "line 1: default_agent: not in agents",
		"agents: {}\n":                                                                  "line 1: agents: want a list",
		"accounts:\n  - {channel: slack, name: x}\n":                                    "line 2: agent: missing",
		agents + "accounts:\n  - channel: slack\n    nam: x\n":                          "line 5: unknown member",
		agents + "accounts:\n  - channel: slack\n":                                      "line 4: name: missing",
		agents + "accounts:\n  - channel: slack\n    name:\n":                           "line 5: name: no value",
		agents + "accounts:\n  - {channel: s/l, name: x}\n":                             "line 4: channel: want letters",
		agents + "accounts:\n  - {channel: s, name: x}\n  - {channel: s, name: x}\n":    "line 5: name: another account",
		agents + "accounts:\n  - channel: s\n    name: x\n    dm: sometimes\n":          "line 6: dm: want one of respond,",
		agents + "accounts:\n  - channel: s\n    name: x\n    dm: allowed_only\n":       "line 6: dm: allowed_only without",
		agents + "accounts:\n  - channel: s\n    name: x\n    group: [all]\n":           "line 6: group: want a text",
		agents + "accounts:\n  - channel: s\n    name: x\n    prefix: bold\n":           "line 6: prefix: want one of off,",
		agents + "accounts:\n  - channel: s\n    name: x\n    format: html\n":           "line 6: format: want one of markdown,",
		agents + "accounts:\n  - channel: s\n    name: x\n    rate_limit: -1\n":         "line 6: rate_limit: want a number from 0",
		agents + "accounts:\n  - channel: s\n    name: x\n    rate_limit: many\n":       "line 6: rate_limit: want a number from 0",
		agents + "accounts:\n  - channel: s\n    name: x\n    threading: maybe\n":       "line 6: threading: want true or false",
		agents + "accounts:\n  - channel: discord\n    name: x\n    threading: true\n":  "line 6: threading: the platform",
		agents + "accounts:\n  - channel: teams\n    name: x\n    threading: true\n":    "line 6: threading: the platform",
		agents + "accounts:\n  - channel: s\n    name: x\n    channel: s\n":             "line 6: channel: repeated",
		agents + "accounts:\n  - channel: s\n    name: x\n    allowed:\n      - \"\"\n": "line 7: allowed: blank",
		agents + "accounts:\n  - channel: s\n    name: x\n    allowed:\n      - [a]\n":  "line 7: allowed: want a text",
		agents + "accounts:\n  - channel: s\n    name: x\n    approvers: U1\n":          "line 6: approvers: want a list",
		agents + "accounts:\n  - channel: s\n    name: x\n    agent: b\n":               "line 6: agent: not in agents",
		agents + "bindings:\n  - peer: U1\n":                                            "line 4: agent: missing",
		agents + "bindings:\n  - agent: a\n":                                            "line 4: a binding without a condition",
		agents + "bindings:\n  - agent: a\n    peer: \"\"\n":                            "line 5: peer: blank",
		agents + "bindings:\n  - agent: a\n    peer: null\n":                            "line 5: peer: no value",
		agents + "bindings:\n  - agent: a\n    peer: \"a\\nb\"\n":                       "line 5: peer: a character",
		agents + "bindings:\n  - agent: a\n    roles: []\n":                             "line 5: roles: no role",
		agents + "bindings:\n  - agent: a\n    channel: slack\n":                        "line 4: no account",
		agents + "bindings: [a]\n":                                                      "line 3: want members",
		"- a\n":                                                                         "line 1: want members",
		"x: 1\na: b: c":                                                                 "line 2",
		"{}\n---\n{}\n":                                                                 "more than one document",
		"accounts: &a [*a]\n":                                                           "line 1: want members",
		agents + "accounts:\n  - {channel: s, name: x}\n    # p\n  - {channel: t, name: y, prompt: " + strings.Repeat("p", 13<<10) + "}": "line 6: prompt: longer than 12288 bytes",
		strings.Repeat("#", maxSize+1):                      "more than 1048576 bytes",
		"agents: [" + strings.Repeat("{},", 1001) + "{}]\n": "line 1: agents: more than 1000 elements",
	} {
		_, err := ParseSettings([]byte(content))
		require.ErrorIs(t, err, ErrSettings, "%.90s", content)
		require.ErrorContains(t, err, want, "%.90s", content)
	}
}

// An error goes to logs, and a value may be a secret at the wrong place.
func TestErrorsDoNotQuoteValues(t *testing.T) {
	const secret = "tok6c1d0f"
	for _, content := range []string{
		"tok6c1d0f: 1\n", "default_agent: tok6c1d0f\n", "agents: [{name: a}]\naccounts: [{channel: s, name: x, agent: a, dm: tok6c1d0f}]\n",
		"agents: [{name: \"tok6c1d0f x\"}]\n", "agents: tok6c1d0f\n",
	} {
		_, err := ParseSettings([]byte(content))
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
	}
}

// write replaces a file as an operator should.
func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".next", []byte(content), 0o600))
	require.NoError(t, os.Rename(path+".next", path))
}

func TestSettingsAreReadAgain(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	path := filepath.Join(t.TempDir(), "channels.yaml")
	write(t, path, whole)
	file, err := OpenSettings(path, zap.New(core))
	require.NoError(t, err)
	var live Live = file.Settings
	origin := topics.Origin{Channel: "slack", Account: "main"}
	before := live()
	require.Equal(t, "Answer briefly.", live.Prompt(origin))
	write(t, path, strings.Replace(whole, "Answer briefly.", "Answer fully.", 1))
	require.Equal(t, "Answer fully.", live.Prompt(origin), "the next message")
	require.Equal(t, "Answer briefly.", before.Accounts[0].Prompt, "what was returned does not change")

	write(t, path, strings.Replace(whole, "dm: allowed_only", "dm: tok6c1d0f", 1))
	for range 3 {
		require.Equal(t, "Answer fully.", live.Prompt(origin), "a file with a mistake changes nothing")
	}
	failures := logs.FilterLevelExact(zap.ErrorLevel).All()
	require.Len(t, failures, 1, "a reason that repeats is logged once")
	require.Contains(t, failures[0].ContextMap()["error"], "line 7: dm")
	require.NotContains(t, failures[0].ContextMap()["error"], "tok6c1d0f")
	write(t, path, "accounts: []")
	require.Empty(t, live().Accounts)
}

// Programs that do not replace a file empty it before they write it. Messages and answers of that moment must not be refused.
func TestFileThatIsEmptiedChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "channels.yaml")
	write(t, path, whole)
	file, err := OpenSettings(path, nil)
	require.NoError(t, err)
	for _, content := range []string{"", " \n", "# the accounts follow\n"} {
		write(t, path, content)
		_, ok := file.Settings().Account("slack", "main")
		require.True(t, ok, "%q", content)
	}
}

func TestOpenSettingsRejectsFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "channels.yaml")
	_, err := OpenSettings(path, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, path, "a: 1")
	_, err = OpenSettings(path, nil)
	require.ErrorIs(t, err, ErrSettings)
	require.ErrorContains(t, err, path)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("accounts: &a [*a]"))
	f.Add([]byte("agents: [{name: a}]\nbindings: [{agent: a, peer: 1, roles: [x]}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := ParseSettings(content)
		if err != nil {
			require.ErrorIs(t, err, ErrSettings)
			return
		}
		for _, a := range s.Accounts {
			require.NotEmpty(t, a.Channel)
			require.NotEmpty(t, a.Name)
			require.NotEmpty(t, a.Agent+s.DefaultAgent)
			require.NotContains(t, a.Allowed, "")
		}
		for _, b := range s.Bindings {
			require.NotEmpty(t, b.Agent)
			require.NotEmpty(t, b.Channel+b.Account+b.Peer+b.Guild+b.ChannelID+strings.Join(b.Roles, ""))
		}
	})
}
