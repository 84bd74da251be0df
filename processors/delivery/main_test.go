package delivery_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
