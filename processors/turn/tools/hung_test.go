package tools_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
)

func TestToolThatIgnoresItsContextLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		release := make(chan struct{})
		var runs atomic.Int64
		b := newBench(t, map[string]tools.Func{"crane": func(context.Context, tools.Call) (any, error) {
			if runs.Add(1) == 1 {
				<-release
			}
			return "lifted", nil
		}}, tools.Config{Config: worker.Config{Concurrency: 1, Logger: zap.New(core)}, Timeout: 10 * time.Second})
		b.handle(call("t1", "crane", "{}"))
		b.handle(call("t2", "crane", "{}"))
		lines := strings.Join(b.paper.lines(), "\n")
		require.Contains(t, lines, `"reason":"timeout"`)
		require.Contains(t, lines, "lifted")
		require.EqualValues(t, 2, runs.Load())
		warned := logs.FilterMessage("tool ignores the end of its context: its place is free for another call").All()
		require.Len(t, warned, 1)
		require.Equal(t, "crane", warned[0].ContextMap()["tool"])
		close(release)
		synctest.Wait()
	})
}

func TestToolThatAlwaysHangsStartsALimitedNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		release := make(chan struct{})
		var running atomic.Int64
		b := newBench(t, map[string]tools.Func{"crane": func(context.Context, tools.Call) (any, error) {
			running.Add(1)
			<-release
			return nil, nil
		}}, tools.Config{Config: worker.Config{Concurrency: 1, Logger: zap.New(core)}, Timeout: 10 * time.Second})
		for i := range 20 {
			b.handle(call(fmt.Sprint("t", i), "crane", "{}"))
		}
		require.EqualValues(t, 11, running.Load())
		require.Equal(t, 1, logs.FilterMessage("tool ignores the end of its context too often: its calls keep their places").Len())
		require.Len(t, b.paper.lines(), 20, "every call has a result")
		close(release)
		synctest.Wait()
	})
}
