//go:build !unix

package app

import "errors"

// runAsInit is never called: only Unix has a process that inherits orphans.
func (p *program) runAsInit() error { return errors.ErrUnsupported }
