package instance

import (
	"fmt"

	"go.uber.org/zap"
)

// gokaLogger logs Goka's messages at debug level: they are useful only for debugging.
type gokaLogger struct{ log *zap.Logger }

func (g gokaLogger) Print(args ...any)                 { g.log.Debug(fmt.Sprint(args...)) }
func (g gokaLogger) Println(args ...any)               { g.log.Debug(fmt.Sprint(args...)) }
func (g gokaLogger) Printf(format string, args ...any) { g.log.Debug(fmt.Sprintf(format, args...)) }
