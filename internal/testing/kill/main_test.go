package kill

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

func TestMain(m *testing.M) {
	Main(Programs{"waits": Of(waits), "fails": Of(fails), "parent": Of(parent)})
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}

type config struct {
	Dir   string
	After time.Duration
}

// waits runs until it is stopped, and writes what it was told and that it has ended to its directory.
func waits(ctx context.Context, c config) error {
	Logger(zap.WarnLevel).Warn("it begins", zap.Duration("after", c.After))
	write := func(name string) { _ = os.WriteFile(filepath.Join(c.Dir, name), nil, 0o600) }
	Listen(write)
	Say("preparing")
	Say(Running)
	write("began")
	<-ctx.Done()
	write("ended")
	return ctx.Err()
}

func fails(context.Context, config) error { return errors.New("no such ship") }

// parent has a child of its own, as a test has one.
func parent(ctx context.Context, c config) error {
	raw, err := json.Marshal(c, durations)
	if err != nil {
		return err
	}
	text, err := json.Marshal(task{"waits", raw})
	if err != nil {
		return err
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), variable+"="+string(text))
	if _, err := child.StdinPipe(); err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
