//go:build !unix

package relay

import "os/exec"

// group does nothing: there are no process groups here, and the program alone is killed when the context ends.
func group(*exec.Cmd) {}

// endGroup has no group to end.
func endGroup(*exec.Cmd) {}
