package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/processors/channel/settings"
)

func TestMain(m *testing.M) {
	if isChild() {
		main() // the test binary is the program of its child
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}

// buffer is what a program writes while a test reads it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestPlayShowsEveryStep(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	out, errs := new(buffer), new(buffer)
	require.Zero(t, command(ctx, []string{"-timeout", "5m"}, out, errs), "%s%s", out, errs)
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

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"-adapters", "a.yaml"}, {"-settings", "s.yaml"}, {"-unknown"}} {
		errs := new(buffer)
		require.Equal(t, 2, command(t.Context(), args, new(buffer), errs), args)
		require.NotEmpty(t, errs.String())
	}
	require.Zero(t, command(t.Context(), []string{"-h"}, new(buffer), new(buffer)))
}

func TestMistakesOfTheFileOfAdaptersAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adapters.yaml")
	t.Setenv("SET", "value")
	for content, want := range map[string]string{
		"slack: [{nme: main}]": "field nme not found",
		"slack:\n- {name: main, token_variable: CHANNELS_TEST_UNSET}": `line 2: the environment variable "CHANNELS_TEST_UNSET" is empty`,
		"irc: []": "field irc not found",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := readAdapters(path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
	}
	require.NoError(t, os.WriteFile(path, []byte("slack:\n- {name: main, token_variable: SET, signing_secret_variable: SET}"), 0o600))
	f, err := readAdapters(path)
	require.NoError(t, err)
	require.Equal(t, secret("value"), f.Slack[0].Token)
}

// The files of README.md are those that a user copies.
func TestFilesOfTheReadmeCanBeRead(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, blocks, 2)
	for _, name := range regexp.MustCompile(`_variable: (\w+)`).FindAllStringSubmatch(string(readme), -1) {
		t.Setenv(name[1], "value")
	}
	path := filepath.Join(t.TempDir(), "adapters.yaml")
	require.NoError(t, os.WriteFile(path, blocks[0][1], 0o600))
	_, err = readAdapters(path)
	require.NoError(t, err)
	_, err = settings.Parse(blocks[1][1])
	require.NoError(t, err)
}
