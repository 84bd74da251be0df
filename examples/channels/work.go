package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// gateVariable is the environment variable with the path of a file. While the file exists, the tool work does not return: so
// the play decides when tasks are in flight.
const gateVariable = "CHANNELS_HOLD_FILE"

// workTool is the tool of the workspace.
func workTool(hold string) tools.Func {
	return func(ctx context.Context, c tools.Call) (any, error) {
		var input struct {
			Task string `json:"task"`
		}
		if err := c.Bind(&input); err != nil {
			return nil, err
		}
		if err := absent(ctx, hold); err != nil {
			return nil, err
		}
		return map[string]any{"result": "done: " + input.Task}, nil
	}
}

// absent waits until a file does not exist.
func absent(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
