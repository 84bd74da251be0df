package examples

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The limits of the tests, for a machine on which several tests share a processor.
const (
	playLimit = "5m"
	waitLimit = 6 * time.Minute
)

func TestPeersPlayShowsEveryStep(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	require.Zero(t, run(t.Context(), "peers", []string{"-timeout", playLimit}, nil, out, errs), "%s%s", out, errs)
	require.Empty(t, errs.String())
	parts := strings.Split(strings.TrimSpace(out.String()), "\n\n")
	require.Len(t, parts, 7, out)
	for i, want := range [][]string{
		{`hq +is "Headquarters"`, `acme +is "Acme Ltd"`, `globex +is not running`},
		{`hq +sent attempt 1 to acme: delivered`, `model +was told: success: acme`, `agent +The peer says: 3 invoices are open\.`},
		{
			`hq +sent attempt 1 to globex: failed \(unreachable\)`, `hq +sent attempt 2 to globex: failed \(unreachable\)`,
			`globex +has started`,
			`hq +sent attempt \d+ to globex: delivered`, `agent +The peer says: 7 invoices are open\.`,
		},
		{`model +was told: error \(rejected\): `, `agent +That failed .*pay: May this be paid\?`},
		{
			`acme +has removed the token`, `hq +sent attempt 1 to acme: refused \(peer_refused\), status 401`,
			`agent +That failed \(peer_refused\)`,
		},
		{
			`acme +sent attempt 1 to hq: refused \(peer_refused\), status 409`, `acme +was told: error \(peer_refused\): `,
			`agent +The peer says: That failed .*passed this instance`,
		},
		{
			`hq +11 records`, `acme +9 records`, `globex +2 records`,
			`hq: sent, acknowledged \(success\)  <->  acme: received, completed \(success\)`,
			`hq: sent, acknowledged \(success\)  <->  globex: received, completed \(success\)`,
			`hq: sent, acknowledged \(rejected\)  <->  acme: received, completed \(rejected\)`,
			`hq: sent, send_failed \(peer_refused\)  <->  acme: nothing`,
			`acme +refused a request before it was read \(unknown_token, status 401\)`,
			`acme: sent, send_failed \(peer_refused\)  <->  hq: refused \(loop\)`,
			`gaps +none`,
		},
	} {
		for _, line := range want {
			require.Regexp(t, line, parts[i])
		}
	}
}

func TestPlayFailsAtItsTimeout(t *testing.T) {
	errs := new(buffer)
	require.Equal(t, 1, run(t.Context(), "peers", []string{"-timeout", "1ms"}, nil, io.Discard, errs))
	require.Contains(t, errs.String(), "not finished within 1ms")
}

func TestFailedInstanceStopsAllProcesses(t *testing.T) {
	t.Setenv("PEER_MAX_HOPS", "many")
	errs := new(buffer)
	require.Equal(t, 1, run(t.Context(), "peers", []string{"-timeout", playLimit}, nil, io.Discard, errs))
	require.Regexp(t, `(hq|acme) ended unexpectedly: exit status 1`, errs.String())
	require.Contains(t, errs.String(), "peers.maxHops: want a number")
}

func TestInterruptStopsAllProcesses(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out, errs, done := new(buffer), new(buffer), make(chan int, 1)
	go func() { done <- run(ctx, "peers", []string{"-timeout", playLimit}, nil, out, errs) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "acme ") }, waitLimit, time.Millisecond)
	interrupt()
	require.Equal(t, 1, <-done, "which waits for every child")
	require.Contains(t, errs.String(), "interrupt signal received")
}

// With fewer hops the loop is refused for another reason than the play shows.
func TestStepThatDoesNotGoAsExpectedIsAnError(t *testing.T) {
	t.Setenv("PEER_MAX_HOPS", "1")
	out, errs := new(buffer), new(buffer)
	require.Equal(t, 1, run(t.Context(), "peers", []string{"-timeout", playLimit}, nil, out, errs), out)
	require.Equal(t, "peers: this is not what was expected: the tool result of acme is "+
		"\"error (hop_limit): The task was passed on too often.\", want ^error \\(peer_refused\\): \n", errs.String())
}
