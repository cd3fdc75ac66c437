! A program of test/reach.py, which says what it must do: with HDF5's Fortran interface.
program reach
  use hdf5
  implicit none
  integer(hsize_t), parameter :: columns = 1000, rows = 100
  character(20) :: verb, word
  integer(hid_t) :: file
  integer :: values(columns, rows), n, e
  logical :: there

  call get_command_argument(1, verb)
  call get_command_argument(2, word)
  call h5open_f(e)
  if (verb == 'read') then
    call h5fopen_f('fortran.h5'//trim(word), H5F_ACC_RDONLY_F, file, e)
    if (e /= 0) stop 1
    call show()
  else
    inquire (file='fortran.h5', exist=there)
    if (there) then
      call h5fopen_f('fortran.h5', H5F_ACC_RDWR_F, file, e)
    else
      call h5fcreate_f('fortran.h5', H5F_ACC_EXCL_F, file, e)
    end if
    if (e /= 0) stop 1
    n = 3
    if (verb == 'write') read (word, *) n
    call put(n)
    if (verb == 'crash') then
      call h5fflush_f(file, H5F_SCOPE_GLOBAL_F, e)
      call put(4)
      print '(a)', 'ready'
      flush (6)
      call sleep(600)
    end if
  end if
  call h5fclose_f(file, e)
  if (e /= 0) stop 1
  call h5close_f(e)

contains

  ! Column n + 1 of the dataset becomes n + 1.
  subroutine put(n)
    integer, intent(in) :: n
    integer(hid_t) :: set, space, memory, how
    call h5lexists_f(file, 'd', there, e)
    if (.not. there) then
      call h5screate_simple_f(2, [columns, rows], space, e)
      call h5pcreate_f(H5P_DATASET_CREATE_F, how, e)
      call h5pset_chunk_f(how, 2, [columns, 1_hsize_t], e)
      call h5dcreate_f(file, 'd', H5T_NATIVE_INTEGER, space, set, e, how)
      call h5dclose_f(set, e)
      call h5pclose_f(how, e)
      call h5sclose_f(space, e)
    end if
    values(:, 1) = n + 1
    call h5dopen_f(file, 'd', set, e)
    call h5dget_space_f(set, space, e)
    call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, [0_hsize_t, int(n, hsize_t)], [columns, 1_hsize_t], e)
    call h5screate_simple_f(1, [columns], memory, e)
    call h5dwrite_f(set, H5T_NATIVE_INTEGER, values(:, 1), [columns], e, memory, space)
    if (e /= 0) stop 1
    call h5sclose_f(memory, e)
    call h5sclose_f(space, e)
    call h5dclose_f(set, e)
  end subroutine put

  subroutine show()
    integer(hid_t) :: set
    integer :: i
    call h5dopen_f(file, 'd', set, e)
    call h5dread_f(set, H5T_NATIVE_INTEGER, values, [columns, rows], e)
    if (e /= 0) stop 1
    do i = 1, int(rows)
      if (values(1, i) /= 0) write (*, '(i0,1x)', advance='no') values(columns, i)
    end do
    call h5dclose_f(set, e)
  end subroutine show
end program reach
