package agents

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/embedded"
)

// streamBroker is the environment variable that makes the test binary an embedded broker.
const streamBroker = "TURNTABLE_STREAM_BROKER"

// serveBroker is an embedded broker that prints its addresses and runs until its standard input ends.
func serveBroker() {
	b, err := embedded.Start(embedded.Config{})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(b.Addrs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = b.Close()
}

// separateBroker is a broker in a process of its own, so that what it uses is not in the figures of the crew. With the tag kafka
// it is the real Kafka of the tests.
type separateBroker struct {
	addrs []string
	begun time.Time
	child *exec.Cmd // nil for a real Kafka
	in    io.Closer
}

func startBroker(b *testing.B) *separateBroker {
	if !testbroker.Embedded {
		return &separateBroker{addrs: testbroker.Start(b)}
	}
	exe, err := os.Executable()
	require.NoError(b, err)
	s := &separateBroker{begun: time.Now(), child: exec.Command(exe)}
	s.child.Env, s.child.Stderr = append(os.Environ(), streamBroker+"=1"), os.Stderr
	s.in, err = s.child.StdinPipe()
	require.NoError(b, err)
	out, err := s.child.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, s.child.Start())
	b.Cleanup(s.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	s.addrs = strings.Split(strings.TrimSpace(line), ",")
	return s
}

// stop ends the broker. Only the first call has an effect.
func (s *separateBroker) stop() {
	if s.child != nil && s.child.ProcessState == nil {
		_ = s.in.Close()
		_ = s.child.Wait()
	}
}

// report reports the peak memory of a broker that has ended, and the cores that it used on average.
func (s *separateBroker) report(b *testing.B) {
	if s.child == nil {
		return
	}
	u := s.child.ProcessState.SysUsage().(*syscall.Rusage)
	b.ReportMetric(float64(u.Maxrss)/1024, "broker-peak-MiB") // KiB on Linux
	used := s.child.ProcessState.UserTime() + s.child.ProcessState.SystemTime()
	b.ReportMetric(used.Seconds()/time.Since(s.begun).Seconds(), "broker-cores")
}
