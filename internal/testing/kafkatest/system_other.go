//go:build !linux && !darwin

package kafkatest

import (
	"errors"
	"os"
	"syscall"
)

// There is no pause here, so there is no cluster either: tryHold, which comes first, refuses.
var signalStop, signalPause, signalResume = os.Interrupt, os.Interrupt, os.Interrupt

func tryHold(*os.File) error { return errors.ErrUnsupported }

func attributes(bool) *syscall.SysProcAttr { return nil }
