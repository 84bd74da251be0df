package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

func TestMain(m *testing.M) {
	if isChild() {
		main() // the test binary is the program of its children
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}
