package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// oldestJava is the oldest Java that Apache Kafka 4 brokers run on.
const oldestJava = 17

// ErrJava is wrapped by the error of a start if there is no Java, or only an older one.
var ErrJava = errors.New("kafkatest: Java 17 or newer is needed")

var javaVersion = regexp.MustCompile(`version "(\d+)(?:\.(\d+))?`)

// findJava returns the path of Java: that in JAVA_HOME, or else the one in PATH. It returns an error if it is too old.
func findJava(ctx context.Context) (string, error) {
	path, err := exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path, err = exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrJava, err)
	}
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s -version: %w: %s", ErrJava, path, err, lastLines(out, 3))
	}
	major, ok := javaMajor(string(out))
	switch {
	case !ok:
		return "", fmt.Errorf("%w: the output of %s -version has no version: %s", ErrJava, path, lastLines(out, 3))
	case major < oldestJava:
		return "", fmt.Errorf("%w: %s is Java %d", ErrJava, path, major)
	}
	return path, nil
}

// javaMajor reads the output of java -version. Up to Java 8, versions began with "1.".
func javaMajor(out string) (int, bool) {
	m := javaVersion.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	major := m[1]
	if major == "1" && m[2] != "" {
		major = m[2]
	}
	n, err := strconv.Atoi(major)
	return n, err == nil
}
