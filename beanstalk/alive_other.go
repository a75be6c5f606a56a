//go:build !unix

package beanstalk

import "net"

// hungUp cannot be known here before the next command.
func hungUp(net.Conn) bool { return false }
