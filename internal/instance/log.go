package instance

import (
	"fmt"

	"go.uber.org/zap"
)

// gokaLogger gives Goka a logger. What it prints is of use only to whoever looks for a fault: debug.
type gokaLogger struct{ log *zap.Logger }

func (g gokaLogger) Print(args ...any)                 { g.log.Debug(fmt.Sprint(args...)) }
func (g gokaLogger) Println(args ...any)               { g.log.Debug(fmt.Sprint(args...)) }
func (g gokaLogger) Printf(format string, args ...any) { g.log.Debug(fmt.Sprintf(format, args...)) }
