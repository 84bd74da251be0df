package program

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Address is an address that nothing listens on.
func Address(tb testing.TB) string {
	tb.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, free.Close())
	return free.Addr().String()
}

// Service is a program that serves HTTP.
type Service struct {
	*exec.Cmd
	URL  string
	Errs *Output
}

// Serve starts a program that listens on addr, and returns when it is healthy. Its context interrupts it, as Ctrl-C does.
func Serve(tb testing.TB, c *exec.Cmd, addr string) *Service {
	tb.Helper()
	s := &Service{c, "http://" + addr, new(Output)}
	s.Stderr, s.WaitDelay = s.Errs, time.Minute
	s.Cancel = func() error { return s.Process.Signal(os.Interrupt) }
	require.NoError(tb, s.Start())
	require.Eventually(tb, func() bool {
		resp, err := http.Get(s.URL + "/healthz")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond, s.Errs)
	return s
}

// End interrupts the program by stop, which ends its context.
func (s *Service) End(tb testing.TB, stop func()) {
	tb.Helper()
	http.DefaultClient.CloseIdleConnections()
	stop()
	_ = s.Wait() // the context has ended
	require.Zero(tb, s.ProcessState.ExitCode(), s.Errs.String())
}

// Kill ends the program as kill -9 does.
func (s *Service) Kill(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.Process.Kill())
	_ = s.Wait()
}
