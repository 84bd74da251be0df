package examples

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChannelsPlayShowsEveryStep(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	out, errs := new(buffer), new(buffer)
	require.Zero(t, run(ctx, "channels", []string{"-timeout", "5m"}, nil, out, errs), "%s%s", out, errs)
	require.Empty(t, errs.String())
	parts := strings.Split(strings.TrimSpace(out.String()), "\n\n")
	require.Len(t, parts, 6, out)
	for i, want := range [][]string{
		{`Slack DANA +<- \[concierge\] Right away`, `Slack DANA +<- \[concierge\] The workspace reports: done: Clean my inbox`},
		{`Slack COPS, thread 1700\.1 +<- .*done: Check the calendar`},
		{`mail to cleo@customer\.example +<- .*done: .*Where is my order\?`, `answers <first@customer\.example>`},
		{
			`has 3 open delegations`, `was killed and starts again`, `Slack DANA .*done: Book a table`,
			`Slack COPS, thread 1700\.1 .*done: Count the tickets`, `mail to cleo@customer\.example .*Send the invoice`,
		},
		{`asks? for approval`, `/approve [0-9a-f]+`, `Slack DANA +<- .*Approved`, `Slack DANA +<- \[concierge\] Paid\.`},
		{`is completed: done: Water the plants`, `the delivery to channel/slack/main is dead: .*channel is not configured`},
	} {
		for _, w := range want {
			require.Regexp(t, regexp.MustCompile(w), parts[i])
		}
	}
}

// noPort ends the program when it has read its files.
const noPort = "no-port"

// start runs the program on the contents of two files until it fails at its address, and returns what it says.
func start(t *testing.T, adapters, settings []byte) (said, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "adapters.yaml")
	require.NoError(t, os.WriteFile(path, adapters, 0o600))
	of := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(of, settings, 0o600))
	errs := new(buffer)
	args := []string{"-adapters", path, "-settings", of, "-addr", "127.0.0.1:" + noPort}
	require.Equal(t, 1, run(deadline(t), "channels", args, nil, io.Discard, errs))
	return errs.String(), path
}

func TestMistakesOfTheFileOfAdaptersAreNamed(t *testing.T) {
	t.Setenv("SET", strings.Repeat("f", 32))
	settings := []byte("agents: [{name: concierge}]\ndefault_agent: concierge")
	for content, want := range map[string]string{
		"slack: [{nme: main}]": "field nme not found",
		"slack:\n- {name: main, token_variable: CHANNELS_TEST_UNSET}": `line 2: the environment variable "CHANNELS_TEST_UNSET" is empty`,
		"irc: []": "field irc not found",
	} {
		said, path := start(t, []byte(content), settings)
		require.Contains(t, said, want)
		require.Contains(t, said, path)
	}
	said, path := start(t, []byte("slack:\n- {name: main, token_variable: SET, signing_secret_variable: SET}"), settings)
	require.NotContains(t, said, path)
	require.Contains(t, said, noPort, "both files are accepted")
}

// secrets have the shapes that the platforms give them. Any other variable of README.md must be added.
var secrets = map[string]string{
	"SLACK_TOKEN": "xoxb-example", "SLACK_SIGNING_SECRET": strings.Repeat("f", 32), "TEAMS_SECRET": "value",
	"TELEGRAM_TOKEN": "4242:" + strings.Repeat("a", 35), "DISCORD_TOKEN": "value", "MATTERMOST_TOKEN": "value",
	"MATRIX_TOKEN": "value", "CRM_SECRET": "whsec_" + strings.Repeat("MfKQ", 8), "DESK_PASSWORD": "value",
}

// The files of README.md are those that a user copies.
func TestFilesOfTheChannelsREADMEAreAccepted(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(module, "examples", "channels", "README.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, blocks, 2)
	for _, name := range regexp.MustCompile(`_variable: (\w+)`).FindAllStringSubmatch(string(readme), -1) {
		t.Setenv(name[1], secrets[name[1]])
	}
	said, _ := start(t, blocks[0][1], blocks[1][1])
	require.Contains(t, said, noPort)
	require.Equal(t, 1, strings.Count(said, "\n"), said)
}
