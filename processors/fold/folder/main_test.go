package folder_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, leaktest.Libraries()...) }
