package group_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/leaktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, leaktest.Libraries()...) }
