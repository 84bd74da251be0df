package team

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
