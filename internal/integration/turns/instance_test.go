package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
)

// instance is a child process that runs the pipeline.
type instance struct {
	*kill.Process
	name, dir string
}

func spawn(t *testing.T, c config) *instance {
	t.Helper()
	p := kill.Start(t, turnsProgram, child{c.agent, c.instance, c.dir, c.brokers, c.guarantee, c.child})
	return &instance{p, c.instance, c.dir}
}

// kill ends the process as a crash of the machine would, for all it knows.
func (i *instance) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, i.Kill(), i.name)
}

// jump sets the process's clock forward, or back.
func (i *instance) jump(t *testing.T, by time.Duration) {
	t.Helper()
	require.NoError(t, i.Tell("clock "+by.String()))
}

// end waits for the process to end by itself, and returns how.
func (i *instance) end(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	err := i.Wait(ctx)
	require.NoError(t, ctx.Err(), i.name)
	return err
}

// refuses expects that the process ends by itself with an error that says so.
func (i *instance) refuses(t *testing.T, says ...string) {
	t.Helper()
	require.Error(t, i.end(t))
	for _, s := range says {
		require.Contains(t, i.Logged(), s)
	}
}
