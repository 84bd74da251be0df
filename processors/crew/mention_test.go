package crew_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/crew/internal/mention"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

var agents = []mention.Candidate{
	{ID: "1a2b3c4d-0000-4000-8000-000000000001", RoleID: "lead", RoleName: "Project Lead", Status: view.Running},
	{ID: "1a2bffff-0000-4000-8000-000000000002", RoleID: "developer", RoleName: "Developer", Status: view.Idle},
	{ID: "deadbeef-0000-4000-8000-000000000003", RoleID: "developer", RoleName: "Developer", Status: view.Running},
	{ID: "c0ffee00-0000-4000-8000-000000000004", RoleID: "tester", RoleName: "QA Tester", Status: view.Completed},
	{ID: "face0000-0000-4000-8000-000000000005", RoleID: "face", RoleName: "Face", Status: view.Creating},
}

func ids(agents []mention.Candidate) (ids []string) {
	for _, a := range agents {
		ids = append(ids, view.ShortID(a.ID))
	}
	return ids
}

func TestM01_SuggestionsAreRunningAndIdleAgents(t *testing.T) {
	require.Equal(t, []string{"1a2b3c4d", "1a2bffff", "deadbeef"}, ids(mention.Suggest("", agents)))
	for text, want := range map[string]string{"@": "", "hello @de": "de", "a@b": "b", "@@x_1": "x_1"} {
		query, typing := mention.Query(text)
		require.True(t, typing, text)
		require.Equal(t, want, query)
	}
	for _, text := range []string{"", "hello", "@de ", "@de-", "@x\n"} {
		_, typing := mention.Query(text)
		require.False(t, typing, text)
	}
	require.Len(t, mention.SuggestMembers("", agents), 5, "members of a group are suggested whatever their status is")
	require.Len(t, mention.SuggestMembers("", append(agents, agents...)), mention.MaxMembers)
}

func TestM02_QueriesFitShortIDsAndNamesOfRoles(t *testing.T) {
	for query, want := range map[string][]string{
		"1a2b": {"1a2b3c4d", "1a2bffff"}, "1A2BF": {"1a2bffff"}, "LEAD": {"1a2b3c4d"}, "velop": {"1a2bffff", "deadbeef"}, "dead": {"deadbeef"},
		"beef": nil, "tester": nil, "1a2b3c4d-": nil,
	} {
		require.Equal(t, want, ids(mention.Suggest(query, agents)), query)
	}
}

func TestM03_SelectionInsertsTheShortID(t *testing.T) {
	for _, test := range []struct {
		text   string
		cursor int
		want   string
		at     int
	}{
		{"@", 1, "@deadbeef ", 10},
		{"Ask @dev about it", 8, "Ask @deadbeef  about it", 14},
		{"@1a2b3c4d and @d", 16, "@1a2b3c4d and @deadbeef ", 24},
		{"@x tail @y", 2, "@deadbeef  tail @y", 10},
		{"none", 4, "none@deadbeef ", 14},
		{"é@", 99, "é@deadbeef ", 12},
		{"@", -1, "@deadbeef @", 10},
	} {
		text, at := mention.Insert(test.text, test.cursor, agents[2].ID)
		require.Equal(t, test.want, text)
		require.Equal(t, test.at, at)
	}
}

func tokens(text string) (tokens []string) {
	for _, m := range mention.Find(text) {
		tokens = append(tokens, m.Token)
	}
	return tokens
}

func TestM06_MentionsAreFourToEightDigitsInLowerCase(t *testing.T) {
	for text, want := range map[string][]string{
		"@1a2b": {"1a2b"}, "@1a2b3c4": {"1a2b3c4"}, "@1a2b3c4d": {"1a2b3c4d"}, "@1234": {"1234"},
		"@1a2": nil, "@1a2b3c4d5": nil, "@1A2B3C4D": nil, "@1a2b3c4D": nil, "@1a2b3c4d_": nil, "@1a2bx": nil, "@1a2bé": nil, "@": nil, "1a2b3c4d": nil,
		"@1a2b3c4d.": {"1a2b3c4d"}, "(@1a2b3c4d)": {"1a2b3c4d"}, "@1a2b3c4d-x": {"1a2b3c4d"}, "@1a2b3c4d, @dead: and @beef!": {"1a2b3c4d", "dead", "beef"},
		"@@1a2b3c4d": {"1a2b3c4d"}, "é @1a2b": {"1a2b"}, "@1a2b@dead": {"1a2b"}, "**@1a2b** and [x @dead](y)": {"1a2b", "dead"},
		"line\n@1a2b\nline": {"1a2b"}, "> quoted @1a2b": {"1a2b"}, "@1a2b @1a2b": {"1a2b", "1a2b"},
	} {
		require.Equal(t, want, tokens(text), text)
	}
	m := mention.Find("é @1a2b.")
	require.Equal(t, []mention.Mention{{Token: "1a2b", Start: 3, End: 8}}, m)
}

// An ID in code or in an e-mail address is not meant for delivery: the contract of the web page is kept, not that of its first program.
func TestM07_CodeAndAddressesAreNotMentions(t *testing.T) {
	for text, want := range map[string][]string{
		"Run `echo @1a2b` for @dead":             {"dead"},
		"``a ` @1a2b`` and @dead":                {"dead"},
		"one ` @1a2b with a single backtick":     {"1a2b"},
		"`two\nlines @1a2b` @dead":               {"dead"},
		"```\n@1a2b\n```\n@dead":                 {"dead"},
		"```sh @1a2b\ncode\n```\n@dead":          {"dead"},
		"~~~\n@1a2b\n```\n@1a2b\n~~~\n@dead":     {"dead"},
		"> ```\n> @1a2b\n> ```\n\n@dead":         {"dead"},
		"- item\n\n  ```\n  @1a2b\n  ```\n@dead": {"dead"},
		"text\n\n    @1a2b\n\n@dead":             {"dead"},
		"```\n@1a2b has no end":                  nil,
		"a@deadbeef.com":                         nil,
		"mail john.doe@deadbeef":                 nil,
		"x-@dead y+@dead é@dead 1@dead _@dead":   nil,
		"wait.@dead":                             nil,
		"wait. @dead -@beef":                     {"dead", "beef"},
	} {
		require.Equal(t, want, tokens(text), text)
	}
}

func shown(text string) string {
	var b strings.Builder
	for _, s := range mention.Render(text, agents) {
		switch s.Kind {
		case mention.Plain:
			b.WriteString(s.Source)
		case mention.Agent:
			b.WriteString("<" + s.Badge + ">")
		case mention.User:
			b.WriteString("<USER " + s.Source + ">")
		}
	}
	return b.String()
}

func TestM09_RolesAndThePersonAreShown(t *testing.T) {
	for text, want := range map[string]string{
		"ask @developer now":    "ask <@developer-1a2bffff> now",
		"ask @DEVELOPER.":       "ask <@developer-1a2bffff>.",
		"ask @qa-tester":        "ask <@qa tester-c0ffee00>",
		"ask @Tester":           "ask <@qa tester-c0ffee00>",
		"ask @project-lead":     "ask <@project lead-1a2b3c4d>",
		"ask @deadbeef":         "ask <@developer-deadbeef>",
		"ask @dead-code":        "ask <@developer-deadbeef>-code",
		"ask @1a2b":             "ask @1a2b",
		"ask @1a2b3":            "ask <@project lead-1a2b3c4d>",
		"ask @face":             "ask <@face-face0000>",
		"ask @beef":             "ask @beef",
		"ask @nobody":           "ask @nobody",
		"ask @user":             "ask <USER @user>",
		"ask @USER's opinion":   "ask <USER @USER>'s opinion",
		"ask @username":         "ask @username",
		"ask @user-name":        "ask @user-name",
		"a@developer.com":       "a@developer.com",
		"@dev @developer @user": "@dev <@developer-1a2bffff> <USER @user>",
		"":                      "",
	} {
		require.Equal(t, want, shown(text), text)
	}
	require.Empty(t, mention.Render("", agents))
	for text, want := range map[string]bool{
		"@user": true, "Done.\n  @user  \nPlease look.": true, "@User\n": true, "ask @user": false, "@username": false, "@user: look": false, "": false,
	} {
		require.Equal(t, want, mention.ToUser(text), text)
	}
}

func TestM10_OnlyPlainTextShowsMentions(t *testing.T) {
	for _, text := range []string{
		"**@developer**", "*@developer*", "_@user_", "***@dead***", "`@developer`", "```\n@developer\n```", "    @developer", "# @developer",
		"[@developer](x)", "> @developer", "| a | b |\n|---|---|\n| @developer | @user |", "<b title=\"@developer\">", "- **@developer**",
	} {
		require.Equal(t, text, shown(text), text)
	}
	for text, want := range map[string]string{
		"- @user\n- @developer":            "- <USER @user>\n- <@developer-1a2bffff>",
		"1. one\n\n   @user":               "1. one\n\n   <USER @user>",
		"**bold** @user *x*":               "**bold** <USER @user> *x*",
		"two\nlines @user":                 "two\nlines <USER @user>",
		"a [link](x) and @user `code`":     "a [link](x) and <USER @user> `code`",
		"odd * and _ and [ and ! @user":    "odd * and _ and [ and ! <USER @user>",
		"| a |\n|---|\n| @user |\n\n@user": "| a |\n|---|\n| @user |\n\n<USER @user>",
	} {
		require.Equal(t, want, shown(text), text)
	}
}

// The sources of the segments are the text, and mentions have places in it.
func TestTextsAreKept(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"@1a2b3c4d", "@developer", "@user", " ", "\n", "\n\n", "`", "```\n", "*", "_", "[", "](", ")", "> ", "- ", "| ", "|---|\n",
		"    ", "\t", "x", ".", "é", "\xff", "\x00", "&amp;", "<", ">", "\\", "\r\n", "# ", "~~~",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(parts, 0, 40).Draw(t, "text"), "")
		joined := ""
		for _, s := range mention.Render(text, agents) {
			require.NotEmpty(t, s.Source)
			joined += s.Source
		}
		require.Equal(t, text, joined)
		end := 0
		for _, m := range mention.Find(text) {
			require.GreaterOrEqual(t, m.Start, end)
			require.Equal(t, "@"+m.Token, text[m.Start:m.End])
			end = m.End
		}
	})
}

// The agents of other crews wait while mentions are looked for.
func TestMentionsOfALongTextAreFoundInLittleTime(t *testing.T) {
	for _, part := range []string{"*a_", "[a](", "`a` @1a2b3c4d ", "[", "> ", "`"} {
		begin := time.Now()
		require.NotEmpty(t, mention.Find("@1a2b3c4d "+strings.Repeat(part, (128<<10)/len(part))), part)
		require.Less(t, time.Since(begin), 5*time.Second, part)
	}
	found := mention.Find("*@1a2b3c4d* [`@1a2b3c4d`](x) **`@1a2b3c4d`** [@1a2bffff](y)")
	require.Equal(t, []string{"1a2b3c4d", "1a2bffff"}, []string{found[0].Token, found[1].Token})
	require.Len(t, found, 2)
}
