package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// The commands of the README are run as they are there, with the variables that the example prints.
func TestCommandsOfThePeersREADMEWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	page, err := os.ReadFile(filepath.Join(module, "examples", "peers", "README.md"))
	require.NoError(t, err)
	commands := shellBlock.FindAllStringSubmatch(string(page), -1)
	want := []string{
		`"instanceId": "acme"`,
		`"result": "3 invoices are open\."`,
		`(?s)"status": "rejected".*"pendingApprovalSummary": "pay: May this be paid\?"`,
		`"taskId": "curl-3"`,
		`(?s)"taskId": "curl-3".*"result": "3 invoices are open\."`,
		`"status": "running"`,
		`(?s)"status": "error".*"error": "cancelled"`,
		`"result": "3 invoices are open\."`,
		`^401\n$`,
	}
	require.Len(t, commands, len(want))

	ctx, stop := context.WithCancel(t.Context())
	out, errs, done := new(buffer), new(buffer), make(chan int, 1)
	go func() { done <- run(ctx, "peers", []string{"-hold", "-timeout", playLimit}, nil, out, errs) }()
	exports := regexp.MustCompile(`(?m)^export .*\n(?:export .*\n)*`)
	require.Eventually(t, func() bool {
		return strings.Contains(out.String(), "export ACME_TOKEN=") || len(done) > 0
	}, waitLimit, 10*time.Millisecond)
	variables := exports.FindString(out.String())
	require.NotEmpty(t, variables, "%s%s", out, errs)
	shell := func(command string) string {
		answer, err := exec.CommandContext(t.Context(), "sh", "-c", variables+command).CombinedOutput()
		require.NoError(t, err, "%s%s", command, answer)
		return string(answer)
	}
	for i, want := range want {
		answer := shell(commands[i][1])
		require.Regexp(t, want, answer, commands[i][1])
		if i == 1 {
			require.Equal(t, answer, shell(commands[i][1]), "the repeated task has the stored reply")
		}
	}
	stop()
	require.Zero(t, <-done, errs)
	require.Empty(t, errs.String())
}
