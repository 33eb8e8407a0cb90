"""Django REST framework as its tutorial has it: ModelSerializer, CursorPagination, JSONRenderer."""
