//go:build !linux && !darwin

package kafkatest

import (
	"errors"
	"os"
	"syscall"
)

// This system cannot pause processes, so clusters are not supported: tryLock, which a start calls first, returns an error.
var signalStop, signalPause, signalResume = os.Interrupt, os.Interrupt, os.Interrupt

func tryLock(*os.File) error { return errors.ErrUnsupported }

func attributes(bool) *syscall.SysProcAttr { return nil }
