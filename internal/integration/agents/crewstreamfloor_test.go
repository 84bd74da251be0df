package agents

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// floor is the CPU time per update of this process, and the updates per second, if it only reads and decodes what the same agents
// stream.
func (r *streamRig) floor(n int) (each time.Duration, perSecond float64) {
	exe, err := os.Executable()
	require.NoError(r.b, err)
	ctx, cancel := context.WithTimeout(r.ctx, measured+warmUp)
	defer cancel()
	var updates atomic.Int64
	var group errgroup.Group
	for range n {
		c := exec.CommandContext(ctx, exe)
		in, err := c.StdinPipe()
		require.NoError(r.b, err)
		out, err := c.StdoutPipe()
		require.NoError(r.b, err)
		require.NoError(r.b, c.Start())
		_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"session/prompt"}`)
		require.NoError(r.b, err)
		group.Go(func() error {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var m struct {
					Params struct {
						Update struct {
							Content struct {
								Text string `json:"text"`
							} `json:"content"`
						} `json:"update"`
					} `json:"params"`
				}
				if json.Unmarshal(lines.Bytes(), &m) == nil && m.Params.Update.Content.Text != "" {
					updates.Add(1)
				}
			}
			_ = c.Wait() // ended by its context
			return nil
		})
	}
	before, begun := cpuTime(), time.Now()
	require.NoError(r.b, group.Wait())
	require.NotZero(r.b, updates.Load())
	return (cpuTime() - before) / time.Duration(updates.Load()), float64(updates.Load()) / time.Since(begun).Seconds()
}
