package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

func TestMain(m *testing.M) {
	if isChild() {
		main() // the test binary is the program of its children
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

// The limits of the tests, for a machine on which several tests share a processor.
const (
	playLimit = "5m"
	waitLimit = 6 * time.Minute
)

func TestPlayShowsEveryStep(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	require.Zero(t, command(t.Context(), []string{"-timeout", playLimit}, out, errs), "%s%s", out, errs)
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
	require.Equal(t, 1, command(t.Context(), []string{"-timeout", "1ms"}, io.Discard, errs))
	require.Contains(t, errs.String(), "not finished within 1ms")
}

func TestFailedInstanceStopsAllProcesses(t *testing.T) {
	t.Setenv("PEER_MAX_HOPS", "many")
	errs := new(buffer)
	require.Equal(t, 1, command(t.Context(), []string{"-timeout", playLimit}, io.Discard, errs))
	require.Regexp(t, `(hq|acme) ended unexpectedly: exit status 1`, errs.String())
	require.Contains(t, errs.String(), "peers.maxHops: want a number")
}

func TestInterruptStopsAllProcesses(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out, errs, done := new(buffer), new(buffer), make(chan int, 1)
	go func() { done <- command(ctx, []string{"-timeout", playLimit}, out, errs) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "acme ") }, waitLimit, time.Millisecond)
	interrupt()
	require.Equal(t, 1, <-done, "which waits for every child")
	require.Contains(t, errs.String(), "canceled")
}

func TestUnexpectedTextIsAnError(t *testing.T) {
	require.NoError(t, expect("the answer", "42 rows", `^\d+ rows$`))
	err := expect("the answer", "no\nrows", `^\d+ rows$`)
	require.ErrorIs(t, err, errUnexpected)
	require.Regexp(t, regexp.QuoteMeta(`the answer is "no rows", want ^\d+ rows$`), err.Error())
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"-no-such"}, {"question"}} {
		errs := new(buffer)
		require.Equal(t, 2, command(t.Context(), args, io.Discard, errs), args)
		require.NotEmpty(t, errs.String())
	}
	require.Zero(t, command(t.Context(), []string{"-h"}, io.Discard, io.Discard))
	require.Equal(t, 1, command(t.Context(), []string{instanceRole, "-no-such"}, io.Discard, io.Discard))
}
