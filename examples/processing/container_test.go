package main

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"
)

// service is a service of compose.yaml.
type service struct {
	Profiles    []string                              `yaml:"profiles"`
	Image       string                                `yaml:"image"`
	Build       any                                   `yaml:"build"`
	Ports       []string                              `yaml:"ports"`
	Environment map[string]*string                    `yaml:"environment"`
	Volumes     []string                              `yaml:"volumes"`
	Hostname    string                                `yaml:"hostname"`
	Networks    map[string]struct{ Aliases []string } `yaml:"networks"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

func TestComposeRunsFlightDecksDashboard(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	require.NoError(t, err)
	var file struct {
		Services map[string]service `yaml:"services"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	var names []string
	for name, s := range file.Services {
		if slices.Contains(s.Profiles, "flightdeck") {
			names = append(names, name)
		}
		for other, on := range s.DependsOn {
			of := file.Services[other]
			require.NotEmpty(t, of.Image, "%s depends on %s", name, other)
			require.Equal(t, "service_healthy", on.Condition)
			// A service without a profile always runs.
			require.True(t, len(of.Profiles) == 0 || slices.Equal(of.Profiles, s.Profiles), "%s and %s run together", name, other)
		}
	}
	slices.Sort(names)
	require.Equal(t, []string{"frontend", "processing", "processing-model"}, names)

	frontend, processing := file.Services["frontend"], file.Services["processing"]
	require.Contains(t, frontend.Image, "${FLIGHTDECK_FRONTEND_IMAGE:-")
	require.Equal(t, []string{"127.0.0.1:8080:80"}, frontend.Ports)
	require.Contains(t, processing.Networks["default"].Aliases, "api", "the host in the dashboard's nginx.conf")
	require.Equal(t, "true", *processing.Environment["WS_EVERYONE_SEES_ALL"], "the dashboard has no login")
	require.Empty(t, processing.Volumes, "state of a Kafka that is gone stops the start, and Kafka has no volume")
	require.Empty(t, file.Services["kafka"].Volumes)
	require.Equal(t, "processing", processing.Hostname, "the member's name")
	require.Equal(t, *processing.Environment["AGENT_NAME"], *file.Services["processing-model"].Environment["AGENT_NAME"])

	for name, value := range processing.Environment {
		t.Setenv(name, *value)
	}
	s, err := readSettings(zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, parts{turn: true, doors: true, websocket: true}, s.parts)
	require.Equal(t, []string{"0.0.0.0:8000", "0.0.0.0:8001"}, []string{s.doors, s.websocket})
	require.Equal(t, []string{"kafka:29092"}, s.kafka.Brokers)
	require.Empty(t, s.withoutEffect())

	dockerfile, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	for _, want := range []string{"\nVOLUME /var/lib/turntable\n", "\nUSER 65532:65532\n", `CMD ["/processing", "-healthcheck"]`} {
		require.Contains(t, string(dockerfile), want)
	}
}
