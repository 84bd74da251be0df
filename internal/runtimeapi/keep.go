package runtimeapi

import "errors"

// ErrKeepRecord is processors.ErrKeepRecord.
var ErrKeepRecord = errors.New("processors: this build cannot handle the record")
