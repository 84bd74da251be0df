package agent_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/loader"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)
