'use strict'

require('./no-such-file')
