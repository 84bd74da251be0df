package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTaskIsDelegatedOnceItIsApproved(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	require.Zero(t, command(deadline(t), []string{"-once", "-approve"}, strings.NewReader("y\n"), out, errs), errs)
	require.Empty(t, errs.String())
	require.Regexp(t, firstAnswer, out)
	rest := out.String()
	for _, step := range []string{
		`orchestrator-gate-requests +demo +may delegate_task run\? {"task":"Work out`,
		`gate +May the orchestrator delegate this task\? delegate_task .* \(y or n\)`,
		`orchestrator-gate-outcomes +demo +delegate_task approved: human`,
		`orchestrator-tool-use +demo +delegate_task {"task":"Work out`,
		`worker-message-input +demo--call`,
	} {
		at := regexp.MustCompile(step).FindStringIndex(rest)
		require.NotNil(t, at, "%s in\n%s", step, out)
		rest = rest[at[1]:]
	}
}

func TestTaskThatIsNotApprovedIsNotDelegated(t *testing.T) {
	for _, c := range []struct{ input, outcome, told string }{
		{"n\n", `delegate_task denied: human$`, "refused"},
		{"Not today.\n", `delegate_task denied: human Not today\.$`, `Not today\.`},
		{"", `delegate_task denied: human no one can answer$`, "no one can answer"},
	} {
		out, errs := new(buffer), new(buffer)
		require.Zero(t, command(deadline(t), []string{"-once", "-approve"}, strings.NewReader(c.input), out, errs), errs)
		require.Regexp(t, `(?m)orchestrator-gate-outcomes +demo +`+c.outcome, out)
		require.Regexp(t, `(?m)^answer .*`+c.told, out)
		require.NotContains(t, out.String(), "worker-message-input")
	}
}

// A run that ends while it asks leaves the gate open. The next run asks again.
func TestOpenGateIsAskedAgainByTheNextRun(t *testing.T) {
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(deadline(t))
	in, typed := io.Pipe()
	defer func() { _ = typed.Close() }()
	out, errs, code := new(buffer), new(buffer), make(chan int, 1)
	go func() { code <- command(ctx, []string{"-once", "-approve", "-data", dir}, in, out, errs) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "(y or n)") }, time.Minute, 10*time.Millisecond)
	interrupt()
	require.Zero(t, <-code, errs)

	again := new(buffer)
	require.Zero(t, command(deadline(t), []string{"-once", "-approve", "-data", dir}, strings.NewReader("y\n"), again, errs), errs)
	require.Regexp(t, firstAnswer, again)
	require.Contains(t, again.String(), "(before this run)")
}
